import { createHash } from 'node:crypto'
import { type RawReply, rawReply } from '../../http/endpoint.ts'

const STYLE = `
:root { color-scheme: light dark; --ground: #fbf7f2; --card: #fff; --text: #2b2320; --soft: #6d5f58; --line: #e8ddd3; --ember: #b8430f; --glow: #f4a259; --on-ember: #fff; --edge: #9c8a80; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #191412; --card: #231c19; --text: #f3e9e2; --soft: #b7a69b; --line: #3b302a; --ember: #ff9d5c; --glow: #b8430f; --on-ember: #2b1608; --edge: #8d7b70; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 42rem; margin: 0 auto; padding: clamp(1.5rem, 6vw, 4rem) 1.25rem 3rem; }
header { display: flex; align-items: center; gap: 1.25rem; margin-bottom: 2rem; }
header svg { flex: none; width: 4rem; height: 4rem; }
.outer { fill: var(--ember); } .inner { fill: var(--glow); }
h1 { margin: 0; font-size: clamp(1.6rem, 6vw, 2.2rem); line-height: 1.2; overflow-wrap: anywhere; text-wrap: balance; }
header div { min-width: 0; }
header p { margin: .25rem 0 0; color: var(--soft); overflow-wrap: anywhere; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .75rem; padding: 1.25rem 1.5rem; margin-bottom: 1.25rem; overflow-wrap: anywhere; }
h2 { margin: 1.5rem 0 .5rem; font-size: 1.15rem; } h3 { margin: 1.25rem 0 .5rem; font-size: 1rem; }
section > :first-child { margin-top: 0; }
p, ol, ul, dl { margin: .5rem 0; }
ol, ul { padding-left: 1.4rem; }
li + li { margin-top: .35rem; }
code { font: .92em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: var(--ground); border: 1px solid var(--line); border-radius: .3rem; padding: .1em .35em; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.25rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
a { color: var(--ember); }
nav { margin-bottom: 1.25rem; color: var(--soft); }
footer { color: var(--soft); font-size: .9rem; text-align: center; }
button, .button { display: inline-block; border: 1px solid transparent; border-radius: .6rem; padding: .6rem 1.3rem; background: var(--ember); color: var(--on-ember); font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer; }
button:hover, .button:hover { filter: brightness(1.08); }
.quiet { background: none; border-color: var(--line); color: var(--text); }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.25rem; }
:focus-visible { outline: 3px solid var(--glow); outline-offset: 2px; }
label { display: block; font-weight: 600; }
input { display: block; width: 100%; margin-top: .35rem; border: 1px solid var(--edge); border-radius: .5rem; padding: .65rem .8rem; background: var(--ground); color: var(--text); font: inherit; font-weight: 400; }
.hint { color: var(--soft); font-size: .92rem; }
.problem { border-left: .25rem solid var(--ember); padding-left: .75rem; font-weight: 600; }
.choices { list-style: none; margin: 1rem 0; padding: 0; }
.choices li + li { margin-top: .6rem; }
.choices a { display: flex; align-items: center; gap: .9rem; border: 1px solid var(--line); border-radius: .6rem; padding: .7rem .9rem; background: var(--ground); color: var(--text); font-weight: 600; text-decoration: none; }
.choices a:hover { border-color: var(--ember); }
.badge { flex: none; display: grid; place-items: center; width: 2.2rem; height: 2.2rem; border-radius: 50%; background: var(--ember); color: var(--on-ember); }
form > * + * { margin-top: 1rem; }
label.choice { display: flex; gap: .6rem; align-items: baseline; font-weight: 400; }
input[type=checkbox] { flex: none; display: inline; width: 1.1rem; height: 1.1rem; accent-color: var(--ember); }
@media (max-width: 26rem) { .actions > * { width: 100%; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } }
`

const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing may be loaded, run or framed but what the page says; styles and scripts of its own are named by their hash. */
function policyOf({ hasForm, script, vendor = [] }: Page): string {
  const scripts = [...(script === undefined ? [] : [sourceOf(script)]), ...vendor]
  const directives: [name: string, sources: readonly string[]][] = [
    ['default-src', []],
    ['style-src', [sourceOf(STYLE), ...vendor]],
    ['script-src', scripts],
    ['frame-src', vendor],
    ['connect-src', vendor],
    ['base-uri', []],
    ['form-action', hasForm ? ["'self'"] : []],
    ['frame-ancestors', []],
  ]
  return directives
    .filter(([name, sources]) => sources.length > 0 || !/^(?:script|frame|connect)-src$/.test(name))
    .map(([name, sources]) => `${name} ${sources.length === 0 ? "'none'" : sources.join(' ')}`)
    .join('; ')
}

const FLAME = `<svg viewBox="0 0 64 64" aria-hidden="true"><path class="outer" d="M33 3c3 12 19 18 19 36a20 20 0 0 1-40 0c0-9 5-14 8-20 1 4 3 6 6 7 0-9 2-17 7-23z"/><path class="inner" d="M33 30c2 6 9 9 9 17a10 10 0 0 1-20 0c0-5 3-8 5-11 1 2 2 3 3 3 0-4 1-6 3-9z"/></svg>`

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** A page for people. Texts are escaped here; `content` is HTML. */
export interface Page {
  readonly status?: number
  /** The language of what is written on it; English without it. */
  readonly language?: string
  readonly title: string
  readonly heading: string
  readonly subheading: string
  readonly content: string
  readonly footer?: string
  /** Whether it has a form, which is sent to this server. */
  readonly hasForm?: true
  /** Text of a script to run on it. */
  readonly script?: string
  /** Origins that its scripts, styles and frames may come from. */
  readonly vendor?: readonly string[]
}

/** The page as an answer: light and dark, readable on a phone. */
export function pageReply(page: Page): RawReply {
  const { status = 200, language = 'en', title, heading, subheading, content, footer, script } = page
  const body = `<!doctype html>
<html lang="${escapeHtml(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>${FLAME}<div><h1>${escapeHtml(heading)}</h1><p>${escapeHtml(subheading)}</p></div></header>
${content}${footer === undefined ? '' : `\n<footer>${escapeHtml(footer)}</footer>`}
</main>${script === undefined ? '' : `\n<script>${script}</script>`}
</body>
</html>
`
  return rawReply({
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(page),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    },
    body,
  })
}
