"""The style of the page of a preview: the colours of the dashboard, light and dark."""

STYLE = """
:root { color-scheme: light dark;
  --bg: light-dark(#f5f6f8, #0e1116); --surface: light-dark(#ffffff, #161a21); --line: light-dark(#e2e5eb, #272d38);
  --ink: light-dark(#171b24, #e9ecf2); --ink-2: light-dark(#515a6b, #a4adbd);
  --leave: light-dark(#3446c8, #a8b4ff); --ask: light-dark(#774800, #f0c272); --first: light-dark(#93278a, #ea94dd);
  --label: light-dark(#15653a, #7dd6a1); --stay: light-dark(#868fa0, #6a7487); --none: light-dark(#d5d9e1, #353c49);
  font: 400 100%/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font-size: .875rem; font-variant-numeric: tabular-nums; }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; display: grid; gap: 1rem; }
main > * { min-width: 0; }
h1 { margin: 0 0 .25rem; font-size: 1.375rem; line-height: 1.3; letter-spacing: -.01em; }
h2 { margin: 0 0 .75rem; font-size: .9375rem; }
p { margin: 0; color: var(--ink-2); overflow-wrap: anywhere; }
section { padding: 1rem; border: 1px solid var(--line); border-radius: 12px; background: var(--surface); }
ul, ol { margin: 0; padding: 0; list-style: none; }
.tiles { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.tiles li { padding: .75rem 1rem; border: 1px solid var(--line); border-left-width: 4px; border-radius: 8px;
  background: var(--surface); color: var(--ink-2); }
.tiles b { display: block; color: var(--ink); font-size: 1.5rem; line-height: 1.2; }
.tiles .leave { border-left-color: var(--leave); } .tiles .ask { border-left-color: var(--ask); }
.tiles .first { border-left-color: var(--first); } .tiles .label { border-left-color: var(--label); }
.tiles .stay { border-left-color: var(--stay); }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 12px; } svg text.dim { fill: var(--ink-2); }
rect.leave { fill: var(--leave); } rect.ask { fill: var(--ask); } rect.label { fill: var(--label); }
rect.stay { fill: var(--stay); } rect.none { fill: var(--none); }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: .5rem; color: var(--ink-2); }
.key li::before { content: ""; display: inline-block; width: .75rem; height: .75rem; margin-right: .35rem;
  border-radius: 3px; background: var(--none); }
.key .leave::before { background: var(--leave); } .key .ask::before { background: var(--ask); }
.key .label::before { background: var(--label); } .key .stay::before { background: var(--stay); }
.doubts { display: grid; gap: .75rem; counter-reset: doubt; }
.doubts li { padding-left: 2rem; position: relative; overflow-wrap: anywhere; }
.doubts li::before { counter-increment: doubt; content: counter(doubt); position: absolute; left: 0;
  color: var(--ink-2); }
.doubts em { color: var(--ask); font-style: normal; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; color: var(--ink-2); font-weight: 500; white-space: nowrap; }
th, td { padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 6rem; }
td .leave { color: var(--leave); } td .ask { color: var(--ask); } td .label { color: var(--label); }
td .stay { color: var(--ink-2); }
footer { color: var(--ink-2); }
"""
