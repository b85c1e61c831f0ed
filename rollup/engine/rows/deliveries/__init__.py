"""Queries whose cycle is a delivery: what one event, array, timer or batch lets through a query in one piece."""
