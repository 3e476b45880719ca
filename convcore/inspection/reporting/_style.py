"""The style of a report, and the policy that allows it and nothing else."""

from __future__ import annotations

import base64
import hashlib

_COLOURS = """
:root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#57606a;--line:#d0d7de;
--card:#f6f8fa;--link:#0a56b8;--block:#e3ecfa;--costly:#fdf0d5;--bar:#b8730a;--bad:#b3141f;
--badback:#ffe3e4;--out:#2a72c8;--good:#1a7f37;--shade:#0006}
@media (prefers-color-scheme:dark){:root{--back:#0f1318;--text:#e6e9ed;--soft:#9aa5b1;
--line:#353d47;--card:#171c23;--link:#7ab4ff;--block:#1c2f4a;--costly:#3d2f12;--bar:#e0a33b;
--bad:#ff8087;--badback:#4a1418;--out:#6aa9f5;--good:#5fd07a;--shade:#fff8}}
"""

_GRAPH = """
svg text{fill:var(--text);font:12px system-ui,sans-serif}
svg .name{font-weight:700;font-family:ui-monospace,monospace}svg .facts{fill:var(--soft)}
.box rect,.end rect{fill:var(--card);stroke:var(--line)}.block rect{fill:var(--block)}
.costly rect{fill:var(--costly)}.box.bad rect{stroke:var(--bad);stroke-width:3;fill:var(--badback)}
.box rect.bar{fill:var(--bar);stroke:none}
.wire{fill:none;stroke:var(--soft);stroke-width:1.5}.tip{fill:var(--soft)}.paper{fill:var(--back)}
"""

_PAGE = """
*{box-sizing:border-box}
body{margin:0 auto;max-width:1360px;padding:1rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.2rem 0;overflow-wrap:anywhere}h2{font-size:1.25rem;margin:2rem 0 .5rem;
border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1rem 0 .3rem}
p{max-width:80ch}.soft,figcaption{color:var(--soft)}a{color:var(--link)}
code{font-family:ui-monospace,monospace;font-size:.92em;overflow-wrap:anywhere}
nav a{margin-right:1rem;display:inline-block}
pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
.totals{display:flex;flex-wrap:wrap;gap:.6rem;padding:0;margin:.8rem 0;list-style:none}
.totals li{background:var(--card);border:1px solid var(--line);
border-radius:8px;padding:.4rem .8rem}
.totals b{display:block;font-size:1.15rem}
.verdict{border-left:4px solid var(--good);background:var(--card);padding:.5rem .8rem;
margin:.8rem 0}
.verdict.bad{border-color:var(--bad);background:var(--badback)}
.wide{overflow-x:auto;background:
linear-gradient(to left,var(--back) 1rem,transparent) right/3rem 100% no-repeat local,
linear-gradient(to left,var(--shade),transparent) right/1rem 100% no-repeat}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
#table table{font-size:.82rem}#table th,#table td{padding:.12rem .35rem}
th{color:var(--soft);font-weight:600}thead th{vertical-align:bottom}
th:first-child,td:first-child,.left{text-align:left}td.why{white-space:normal;min-width:16rem}
tr.bad td,tr.bad th{background:var(--badback)}tr.block td:first-child{font-weight:600}
figure{margin:.6rem 1rem .6rem 0;max-width:100%}figure img{display:block;max-width:100%;height:auto;
image-rendering:pixelated;border:1px solid var(--line)}figcaption{font-size:.87rem;max-width:26rem}
#answer figcaption{max-width:14rem}
.row{display:flex;flex-wrap:wrap;align-items:flex-start;gap:.4rem 1.5rem}
.graphs{columns:352px;column-gap:1.5rem}
.graphs>div{break-inside:avoid;padding-bottom:1rem}
details{border:1px solid var(--line);border-radius:8px;margin:.4rem 0;
padding:.3rem .7rem;min-width:0}
details.bad{border-color:var(--bad)}summary{cursor:pointer;overflow-wrap:anywhere}
.layer{scroll-margin-top:3.5rem}details:has(>.layer:target){outline:3px solid var(--link)}
a:focus-visible,summary:focus-visible{outline:3px solid var(--link);outline-offset:2px}
svg{max-width:100%;height:auto;display:block}
.box rect.hist{fill:var(--out);stroke:none}
.wide svg{max-width:none}a:hover .box rect{stroke:var(--link)}
.hist{fill:var(--out)}.axis{stroke:var(--line)}.flame rect{fill:var(--costly);stroke:var(--back)}
.flame .b rect{fill:var(--block)}.key i{display:inline-block;width:1em;height:1em;
border:1px solid var(--line);vertical-align:-.15em;margin:0 .3em 0 1em}
.key .k1{background:var(--block)}.key .k2{background:var(--costly)}.key .k3{background:var(--bar)}
.key .k4{background:var(--badback);border-color:var(--bad)}
@media (max-width:600px){body{padding:.6rem;font-size:14px}th,td{padding:.1rem .4rem}}
"""

# Of a graph in a file of its own, and of a page.
GRAPH_STYLE, STYLE = _COLOURS + _GRAPH, _COLOURS + _GRAPH + _PAGE

_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
# Nothing is loaded and nothing runs; images are in the page, and the style is this one.
POLICY = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_DIGEST}'; "
    "base-uri 'none'; form-action 'none'"
)
