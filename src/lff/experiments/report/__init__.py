"""The report of a comparison: tables, figures and a verdict, made from the run records alone."""

from lff.experiments.report.page import more_tables as more_tables
from lff.experiments.report.page import sizes_table as sizes_table
from lff.experiments.report.page import table as table
from lff.experiments.report.page import write as write
