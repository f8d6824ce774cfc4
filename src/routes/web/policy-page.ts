import type { ReadablePolicy } from '../../domain/identity/policies.ts'
import { escapeHtml, type Page } from './page.ts'

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

function otherLanguages({ language, languages }: ReadablePolicy): string {
  const others = languages.filter((each) => each.language !== language)
  if (others.length === 0) return ''
  const links = others.map(
    (each) =>
      `<a lang="${escapeHtml(each.language)}" hreflang="${escapeHtml(each.language)}" href="${escapeHtml(each.url)}">${escapeHtml(each.name)}</a>`,
  )
  return `<nav>${links.join(' · ')}</nav>\n`
}

/** A policy as people read it before they accept it. */
export function policyPage(policy: ReadablePolicy, brand: string): Page {
  const blocks = policy.text.replaceAll('\r\n', '\n').split(/\n\s*\n/)
  const body = blocks.map((each) => each.trim()).filter((each) => each !== '')
  return {
    language: policy.language,
    title: `${policy.name} · ${brand}`,
    heading: policy.name,
    subheading: `${brand} · ${policy.version}`,
    content: `${otherLanguages(policy)}<section>\n${body.map(block).join('\n')}\n</section>`,
  }
}
