"""The console: web pages that show what a configuration's aggregations hold and how they are doing; read-only.

The server renders every page, so each is complete before a script runs; a script draws the chart. The address of a page
is all of its state. All answers are those of `rollup.query`.
"""
