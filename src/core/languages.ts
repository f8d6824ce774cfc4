const TAG = /^[a-z]{1,8}(?:-[a-z0-9]{1,8})*$/
const MAX_TAGS = 10

/**
 * The languages of an `Accept-Language` header, most wanted first, in lower case, each followed by its parent languages: `de-AT` by
 * `de` (RFC 4647, lookup). Invalid tags are left out.
 */
export function preferredLanguages(header: string | undefined): string[] {
  const wanted = (header ?? '').slice(0, 500).toLowerCase().split(',').slice(0, MAX_TAGS).map(readRange)
  const tags = wanted.filter(({ tag, weight }) => TAG.test(tag) && weight > 0).sort((a, b) => b.weight - a.weight)
  return [...new Set(tags.flatMap(({ tag }) => withParents(tag)))]
}

/** Whether a text is a language tag: `de`, `pt-BR`. */
export function isLanguageTag(text: string): boolean {
  return TAG.test(text.toLowerCase())
}

function readRange(text: string): { tag: string; weight: number } {
  const [tag = '', ...parameters] = text.split(';').map((part) => part.trim())
  const quality = parameters.find((parameter) => parameter.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice(2))
  return { tag, weight: weight >= 0 && weight <= 1 ? weight : 0 }
}

function withParents(tag: string): string[] {
  const parts = tag.split('-')
  return parts.map((_, dropped) => parts.slice(0, parts.length - dropped).join('-'))
}
