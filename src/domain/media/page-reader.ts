/** A page's description of itself, by the names of OpenGraph. */
export interface PageAbout {
  readonly properties: ReadonlyMap<string, string>
  /** As the page has it: perhaps a relative URL. */
  readonly image: string | undefined
}

const MAX_VALUE_CHARS = 1_000
const MAX_PROPERTIES = 50
/** For a page without a description, the length of its text's beginning. */
const MAX_TEXT_CHARS = 500
const SKIPPED = new Set(['script', 'style', 'noscript', 'template', 'svg', 'nav', 'header', 'footer', 'aside', 'form'])

/** The parser takes time in the square of the depth. Pages for people are not this deep. */
const MAX_DEPTH = 500

class TooDeepError extends Error {}

/** Reads a page as far as it was fetched and can be parsed. */
export async function readPage(html: string): Promise<PageAbout> {
  const { Parser } = await import('htmlparser2')
  const found = new Finder()
  const parser = new Parser(
    {
      onopentag: (name, attributes) => found.open(name, attributes),
      ontext: (text) => found.text(text),
      onclosetag: (name) => found.close(name),
    },
    { lowerCaseTags: true, lowerCaseAttributeNames: true, decodeEntities: true },
  )
  try {
    // No end of input is signalled, because reading may have stopped in the middle.
    parser.write(html)
  } catch (error) {
    if (!(error instanceof TooDeepError)) throw error
  }
  return found.about()
}

class Finder {
  readonly #meta = new Map<string, string>()
  #title = ''
  #text = ''
  #icon: string | undefined
  #isTitle = false
  #depth = 0
  #skipping: { readonly name: string; depth: number } | undefined

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw new TooDeepError()
    if (this.#skipping !== undefined) {
      if (name === this.#skipping.name) this.#skipping.depth += 1
      return
    }
    if (name === 'meta') this.#noteMeta(attributes)
    if (name === 'link' && attributes.rel?.toLowerCase() === 'image_src') this.#icon ??= attributes.href
    if (name === 'title') this.#isTitle = this.#title === ''
    if (SKIPPED.has(name)) this.#skipping = { name, depth: 1 }
  }

  text(text: string): void {
    if (this.#skipping !== undefined) return
    if (this.#isTitle) this.#title = (this.#title + text).slice(0, MAX_VALUE_CHARS)
    else if (this.#text.length < MAX_TEXT_CHARS) this.#text += ` ${text.slice(0, MAX_TEXT_CHARS).trim()}`
  }

  close(name: string): void {
    this.#depth -= 1
    if (name === 'title') this.#isTitle = false
    if (this.#skipping?.name !== name) return
    this.#skipping.depth -= 1
    if (this.#skipping.depth === 0) this.#skipping = undefined
  }

  about(): PageAbout {
    const og = [...this.#meta].filter(([name]) => name.startsWith('og:'))
    const properties = new Map(og.slice(0, MAX_PROPERTIES))
    const otherwise = (name: string, ...values: (string | undefined)[]) => {
      const value = tidy(values.find((each) => each !== undefined && tidy(each) !== ''))
      if (!properties.has(name) && value !== '') properties.set(name, value)
    }
    otherwise('og:title', this.#meta.get('twitter:title'), this.#title)
    otherwise('og:description', this.#meta.get('twitter:description'), this.#meta.get('description'), this.#text)
    const image = this.#meta.get('og:image') ?? this.#meta.get('og:image:url') ?? this.#meta.get('og:image:secure_url')
    return { properties, image: image ?? this.#meta.get('twitter:image') ?? this.#icon }
  }

  #noteMeta({ property, name, content }: Readonly<Record<string, string>>): void {
    const key = (property ?? name ?? '').toLowerCase()
    const value = tidy(content)
    const isWanted = /^(?:(?:og|twitter):[a-z:_]{1,60}|description)$/.test(key)
    if (isWanted && value !== '' && !this.#meta.has(key)) this.#meta.set(key, value)
  }
}

const tidy = (text = ''): string => text.replace(/\s+/g, ' ').trim().slice(0, MAX_VALUE_CHARS)
