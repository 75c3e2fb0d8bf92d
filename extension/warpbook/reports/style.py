"""How a report in a notebook looks: colours and rules of its static HTML."""

from __future__ import annotations

from warpbook.colours import SERIES, WARNING
from warpbook_monitors.html_table import TABLE_STYLE

# every rule begins with the report's own class, so that no other output changes
STYLE = (
    TABLE_STYLE
    + """
.warpbook-report { font-size: 13px; line-height: 1.4; max-width: 60em; }
.warpbook-report dl { display: grid; grid-template-columns: max-content 1fr;
  gap: 0 1em; margin: 0.3em 0; }
.warpbook-report dt, .warpbook-report dd { float: none; font-weight: normal;
  margin: 0; padding: 0; width: auto; }
.warpbook-report dt { opacity: 0.7; }
.warpbook-report .warpbook-warning { border-left: 3px solid """
    + WARNING
    + """;
  padding-left: 0.6em; margin: 0.3em 0; }
.warpbook-report .warpbook-verdict { font-weight: 600; margin: 0.3em 0; }
.warpbook-report .warpbook-badge { border: 2px solid; border-radius: 1em; cursor: help;
  font-size: 90%; margin-right: 0.5em; padding: 0.1em 0.7em; white-space: nowrap; }
.warpbook-report .warpbook-change { margin: 0.3em 0; }
.warpbook-report .warpbook-time { margin: 0.6em 0; }
.warpbook-report .warpbook-time figcaption { opacity: 0.7; }
.warpbook-report .warpbook-parts { display: flex; height: 1em; margin: 0.2em 0; }
.warpbook-report .warpbook-parts > span { background: currentColor;
  border-radius: 2px; margin-right: 1px; min-width: 2px; }
.warpbook-report .warpbook-legend > span { margin-right: 1.2em; white-space: nowrap; }
.warpbook-report .warpbook-legend b { background: currentColor; border-radius: 2px;
  display: inline-block; height: 0.7em; margin-right: 0.4em; width: 0.7em; }
.warpbook-report p { margin: 0.3em 0; }
.warpbook-report ol { margin: 0.3em 0; padding-left: 1.5em; }
.warpbook-report li > span { opacity: 0.8; }
.warpbook-report pre { margin: 0.2em 0 0.4em; white-space: pre-wrap; }
.warpbook-report summary { cursor: pointer; }
.warpbook-report .warpbook-groups { display: grid; gap: 0.3em 2em;
  grid-template-columns: repeat(auto-fit, minmax(20em, 1fr)); }
.warpbook-report .warpbook-groups dl { grid-template-columns: fit-content(60%) 1fr; }
.warpbook-report .warpbook-groups dd { text-align: right; }
.warpbook-report .warpbook-groups h4 { font-size: inherit; margin: 0.3em 0 0; }
.warpbook-report table { width: 100%; }
.warpbook-report th, .warpbook-report td { padding: 1px 0 1px 0.8em;
  text-align: right; white-space: nowrap; width: 1%; }
.warpbook-report tr > :first-child { padding-left: 0; width: auto; }
.warpbook-report .warpbook-bar { border-bottom: 2px solid """
    + SERIES["light"][0]
    + """;
  margin-left: auto; }
.warpbook-report .warpbook-picture { margin: 0.6em 0; }
.warpbook-report .warpbook-picture svg { width: 100%; max-width: 46em; }
.warpbook-report .warpbook-picture figcaption { opacity: 0.7; }
.warpbook-report td:first-child { font-family: monospace; }
.warpbook-report caption { caption-side: bottom; color: inherit; font-size: inherit;
  opacity: 0.7; padding: 1px 0; text-align: left; }
"""
)
