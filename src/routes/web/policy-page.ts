import { escapeHtml } from '../../core/template.ts'
import type { ReadablePolicy } from '../../domain/identity/policies.ts'
import type { Services } from '../../domain/services.ts'
import type { RawReply } from '../../http/endpoint.ts'
import { pageReply } from './page.ts'

/** A block between empty lines: a heading after `#`, a list whose every line begins with `-`, or a paragraph. */
function block(text: string): string {
  const heading = /^(#{1,3}) +(.+)$/.exec(text)
  if (heading !== null) {
    const level = heading[1] === '#' ? 'h2' : 'h3'
    return `<${level}>${escapeHtml(heading[2] ?? '')}</${level}>`
  }
  const lines = text.split('\n')
  if (lines.every((line) => /^- /.test(line))) {
    return `<ul>\n${lines.map((line) => `<li>${linked(line.slice(2))}</li>`).join('\n')}\n</ul>`
  }
  return `<p>${linked(text)}</p>`
}

/** Escaped, with web addresses as links. */
function linked(text: string): string {
  return text
    .split(/(https?:\/\/[^\s<>"']+[^\s<>"'.,;:!?)])/)
    .map((part, index) =>
      index % 2 === 0 ? escapeHtml(part) : `<a href="${escapeHtml(part)}">${escapeHtml(part)}</a>`,
    )
    .join('')
}

/** The page with the text of a policy. */
export function policyPage(services: Services, policy: ReadablePolicy): RawReply {
  const { name, version, language, text, languages } = policy
  const blocks = text.replaceAll('\r\n', '\n').split(/\n\s*\n/)
  const body = blocks.map((each) => each.trim()).filter((each) => each !== '')
  const others = languages.filter((each) => each.language !== language)
  return pageReply(
    services,
    'policy.page',
    {
      ...{ name, version, text: body.map(block).join('\n') },
      languages: others.map((each) => ({ language: each.language, name: each.name, link: each.url })),
    },
    { acceptLanguage: language, language },
  )
}
