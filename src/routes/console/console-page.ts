import { escapeHtml } from '../../core/template.ts'
import type { ConsoleList } from '../../domain/console-files.ts'
import { type RawReply, rawReply } from '../../http/endpoint.ts'

export const CONSOLE = '/_hearth/admin/'

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** What the page knows from the beginning. */
export interface ConsoleFacts {
  readonly token: string
  readonly user_id: string
  readonly server_name: string
  readonly version: string
  /** Whether they can prove who they are by a password; else they sign in again. */
  readonly has_password: boolean
}

/** The page that the console's script fills. */
export function consolePage(files: ConsoleList, facts: ConsoleFacts, cookies: readonly string[]): RawReply {
  const file = (name: string) => `${CONSOLE}files/${name}`
  return rawReply({
    headers: { ...HEADERS, ...(cookies.length > 0 && { 'set-cookie': [...cookies] }) },
    body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="hearth" content="${escapeHtml(JSON.stringify(facts))}">
<title>Console · ${escapeHtml(facts.server_name)}</title>
<link rel="icon" href="${file(files.icon)}">
<link rel="stylesheet" href="${file(files.style)}">
<script type="module" src="${file(files.script)}"></script>
</head>
<body>
<div id="app"><noscript><p>The console needs JavaScript. Without it, use the commands: <code>hearth help</code>.</p></noscript></div>
</body>
</html>
`,
  })
}

/**
 * Asks for the same page once more. A browser that comes from another site keeps the console's cookie to itself, and sends it with a request
 * that a page of ours begins.
 */
export function arrivalPage(): RawReply {
  return rawReply({
    headers: { ...HEADERS, refresh: `0; url=${CONSOLE}` },
    body: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Console</title></head>
<body><p><a href="${CONSOLE}">Open the console</a></p></body></html>
`,
  })
}
