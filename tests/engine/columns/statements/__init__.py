"""Statements that the cores are tried with, by what they are over."""
