/** A seeded source of choices: the same seed makes the same cases. */
export interface Dice {
  below(bound: number): number
  pick<T>(items: readonly T[]): T
  shuffle<T>(items: readonly T[]): T[]
}

/** A 32-bit mixing generator, started from the seed and a name so that every endpoint has cases of its own. */
export function diceOf(seed: number, name: string): Dice {
  let state = seed >>> 0
  for (const char of name) state = Math.imul(state ^ char.charCodeAt(0), 0x01000193) >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (bound: number) => next() % bound
  return {
    below,
    pick: (items) => items[below(items.length)]!,
    shuffle(items) {
      const mixed = [...items]
      for (let last = mixed.length - 1; last > 0; last--) {
        const other = below(last + 1)
        ;[mixed[last], mixed[other]] = [mixed[other]!, mixed[last]!]
      }
      return mixed
    },
  }
}

/** Path parameters as they are written into the URL. */
export const PATH_VALUES: readonly string[] = [
  '',
  '%20',
  'x',
  '0',
  '-1',
  '1.5',
  '9007199254740993',
  'null',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '%2f',
  '..%2f..%2fetc%2fpasswd',
  '%2e%2e',
  '..;',
  '%00',
  'a%00b',
  '%ff',
  '%ed%a0%80',
  '%c0%ae',
  '%zz',
  '%',
  '%25%30%30',
  '%f0%9f%94%a5%e2%80%ae%cc%81',
  'a%0d%0aset-cookie:%20a=b',
  "'%20OR%201=1;--",
  '%25s%25n%24%7b7*7%7d',
  'x'.repeat(256),
  '%f0%9f%94%a5'.repeat(100),
  'x'.repeat(3000),
  '@:',
  '@a:%00',
  '@nobody:localhost',
  '@nobody:elsewhere.test:99999',
  '!:',
  '!x',
  '!nowhere:elsewhere.test',
  '$',
  '$x',
  '$x:elsewhere.test',
  '#:localhost',
  '#nowhere:localhost',
  '#nowhere:elsewhere.test',
]

/** Values of query parameters as they are written into the URL. */
export const QUERY_VALUES: readonly string[] = [
  '',
  '0',
  '-1',
  '1.5',
  '1e3',
  '9007199254740991',
  '9007199254740993',
  '99999999999999999999',
  '-9007199254740991',
  'NaN',
  'true',
  'null',
  '[]',
  '%7b%7d',
  '%7b%22room%22:%7b%22timeline%22:%7b%22limit%22:1e99%7d%7d%7d',
  '%7b%22types%22:[null],%22limit%22:-1%7d',
  '%7b%22__proto__%22:%7b%22limit%22:1%7d%7d',
  '['.repeat(2000),
  '%00',
  'a%00b',
  '%ff',
  '%ed%a0%80',
  '%zz',
  '%f0%9f%94%a5%e2%80%ae',
  '__proto__',
  "'%20OR%201=1;--",
  's1_1_1',
  't1-1',
  'x'.repeat(20_000),
]

const DEEP = `${'['.repeat(90)}${']'.repeat(90)}`

/** JSON texts for one value of a body. */
export const JSON_VALUES: readonly string[] = [
  'null',
  'true',
  'false',
  '0',
  '7',
  '-1',
  '-0',
  '1.0',
  '1.5',
  '1e3',
  '9007199254740991',
  '9007199254740992',
  '-9007199254740992',
  '1e308',
  '1e999',
  '""',
  '" "',
  '"x"',
  '"0"',
  '"\\u0000"',
  '"a\\u0000b"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u202e\\ufeff\\uffff"',
  '"🔥é漢"',
  '"__proto__"',
  '"constructor"',
  '"m.room.create"',
  '"invite"',
  '"ban"',
  '"@nobody:localhost"',
  '"@nobody:elsewhere.test"',
  '"!nowhere:elsewhere.test"',
  '"$nothing"',
  '"#nowhere:localhost"',
  `"${'x'.repeat(256)}"`,
  `"${'🔥'.repeat(200)}"`,
  `"${'x'.repeat(66_000)}"`,
  `"${'*?'.repeat(2_000)}"`,
  '[]',
  '[null]',
  '["x",7]',
  '[[]]',
  '[{}]',
  `[${'"x",'.repeat(5_000)}"x"]`,
  '{}',
  '{"x":1}',
  '{"a":1,"a":"b"}',
  '{"__proto__":{"x":1}}',
  '{"":{"\\ud800":"\\u0000"}}',
  DEEP,
  `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`,
]

/** Whole bodies, with the code that each must be refused with where a body is read at all. */
export const BODIES: readonly (readonly [name: string, bytes: string | Buffer, errcode?: string])[] = [
  ['empty', ''],
  ['a space', ' ', 'M_NOT_JSON'],
  ['half', '{"a":', 'M_NOT_JSON'],
  ['text', 'hello', 'M_NOT_JSON'],
  ['two values', '{}{}', 'M_NOT_JSON'],
  ['a comma', '{"a":1,}', 'M_NOT_JSON'],
  ['NUL', '\0', 'M_NOT_JSON'],
  ['NaN', '{"a":NaN}', 'M_NOT_JSON'],
  ['a form', 'a=1&b=2', 'M_NOT_JSON'],
  ['invalid UTF-8', Buffer.from('{"a":"\xff\xfe"}', 'latin1'), 'M_NOT_JSON'],
  ['over-long UTF-8', Buffer.from('{"a":"\xc0\xae"}', 'latin1'), 'M_NOT_JSON'],
  ['a surrogate in UTF-8', Buffer.from('{"a":"\xed\xa0\x80"}', 'latin1'), 'M_NOT_JSON'],
  ['a number beyond any double', '{"a":1e999}', 'M_NOT_JSON'],
  ['null', 'null', 'M_BAD_JSON'],
  ['a list', '[]', 'M_BAD_JSON'],
  ['a list of objects', '[{}]', 'M_BAD_JSON'],
  ['a string', '"x"', 'M_BAD_JSON'],
  ['a number', '7', 'M_BAD_JSON'],
  ['200,000 brackets', '['.repeat(200_000), 'M_BAD_JSON'],
  ['200,000 objects', '{"a":'.repeat(200_000), 'M_BAD_JSON'],
  ['over the limit', `{"a":"${'x'.repeat(1_100_000)}"}`, 'M_TOO_LARGE'],
  ['20,000 keys', `{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":${index}`).join()}}`],
  ['the same key again and again', `{${'"a":1,'.repeat(20_000)}"a":1}`],
  ['__proto__', '{"__proto__":{"auth":{},"type":"x"},"constructor":{"prototype":{}},"toString":1}'],
  ['a lone surrogate', '{"\\ud800":"\\udfff"}'],
  ['NUL in key and value', '{"\\u0000":"\\u0000"}'],
  ['odd numbers', '{"a":-0,"b":1.0,"c":9007199254740993,"d":1e300}'],
]
