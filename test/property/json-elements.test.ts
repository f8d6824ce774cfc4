import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ElementSplitter } from '../../src/core/json-elements.ts'

const spaces = fc.constantFrom('', ' ', '\n\t')
const value = fc.jsonValue({ maxDepth: 4 })
const members = fc.array(
  fc.tuple(
    fc.oneof(fc.constantFrom('state', 'auth_chain', 'other'), fc.string()),
    fc.oneof(value, fc.array(fc.oneof(value, fc.record({ state: fc.array(value), 'a"\\': value })))),
  ),
)

/** The object as text, spaced at will, and cut into pieces at will. */
const cut = (text: string, sizes: readonly number[]): Buffer[] => {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes.length === 0 ? bytes.length : sizes[n % sizes.length]!
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

test('lists come out of any JSON as JSON.parse has them, however it is cut, and the rest is what is left', () => {
  fc.assert(
    fc.property(
      members,
      spaces,
      fc.boolean(),
      fc.array(fc.integer({ min: 1, max: 9 })),
      (all, space, isInList, sizes) => {
        const list = (items: readonly unknown[]) =>
          `[${space}${items.map((item) => JSON.stringify(item, null, space)).join(`${space},${space}`)}${space}]`
        const texts = all.map(
          ([key, item]) => `${JSON.stringify(key)}${space}:${Array.isArray(item) ? list(item) : JSON.stringify(item)}`,
        )
        const object = `${space}{${space}${texts.join(`${space},`)}${space}}`
        const text = isInList ? `[200,${object}]` : object
        const splitter = new ElementSplitter(['state', 'auth_chain'])
        for (const piece of cut(text, sizes)) splitter.push(piece)
        const { lists, rest } = splitter.end()

        const whole = JSON.parse(object) as Record<string, unknown>
        const said = JSON.parse(rest.toString()) as unknown
        for (const name of ['state', 'auth_chain']) {
          // Of several of one name the last list counts.
          const last = all.findLast(([key, item]) => key === name && Array.isArray(item))?.[1]
          expect(lists.get(name)?.map((element) => JSON.parse(element.toString()))).toEqual(
            last === undefined ? undefined : JSON.parse(JSON.stringify(last)),
          )
          if (Array.isArray(whole[name])) whole[name] = []
        }
        expect(isInList ? (said as unknown[])[1] : said).toEqual(whole)
      },
    ),
  )
})
