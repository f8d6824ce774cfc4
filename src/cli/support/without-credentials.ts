import { isHidden } from '../../config/item-secrets.ts'
import { valueAt } from '../../config/live.ts'
import { holdsSecrets, OPTIONS, type OptionSchema } from '../../config/options.ts'

/** Shorter ones would hide words that are none. */
const SHORTEST_SECRET = 6
/**
 * What may be a secret in a text that is none as a whole: long words, shorter ones with a digit, and what is the value of something, as in
 * `key=value`, `Authorization: Bearer value` and `"key": "value"`.
 */
const SECRET_WORDS = [
  /[\w.~+-]{12,}/g,
  /(?=[a-zA-Z_.~+-]*\d)[\w.~+-]{6,}/g,
  /(?<==|\b(?:Bearer|Basic) |: ?"|^[A-Za-z0-9-]+: )[\w.~+-]{6,}/g,
]

/** Words that stand where secrets do. */
const NO_SECRETS = new Set(['Bearer'])

/**
 * A text without what opens something: user names and passwords in addresses, access tokens, and all secrets of the configuration, wherever
 * they came from. It is the second net: nothing of this is collected on purpose.
 */
export function withoutCredentials(text: string, config: object): string {
  let shown = text
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^/\s"'@]+@/gi, '$1[hidden]@')
    .replace(/\bhearth_[\w-]{43,}_[0-9a-f]{8}\b/g, '[hidden]')
  for (const secret of secretsOf(config)) shown = shown.replaceAll(secret, '[hidden]')
  return shown
}

function secretsOf(config: object): string[] {
  const found = new Set<string>()
  for (const { key, schema, holds } of OPTIONS)
    if (holds === undefined && holdsSecrets(schema)) collect(schema, valueAt(config, key), found)
  return [...found].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length)
}

function collect(schema: OptionSchema, value: unknown, found: Set<string>): void {
  if (schema.secret) {
    if (typeof value === 'string')
      for (const spelling of [value, JSON.stringify(value).slice(1, -1)]) found.add(spelling)
  } else if (isHidden(schema, value)) {
    // Somewhere in it: a word of a header, a part of an address.
    for (const text of [value as string | string[]].flat())
      for (const word of [text, ...SECRET_WORDS.flatMap((pattern) => text.match(pattern) ?? [])])
        if (!NO_SECRETS.has(word)) found.add(word)
  } else if (Array.isArray(value)) for (const item of value) collect(schema.items ?? {}, item, found)
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) collect(schema.properties?.[name] ?? {}, inner, found)
}
