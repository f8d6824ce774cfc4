import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { elementTexts } from '../../src/core/json-slices.ts'

const spaced = (value: unknown) => JSON.stringify(value, null, 2)

describe('elementTexts', () => {
  it('gives the texts of the elements, whatever else the object holds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue()),
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.boolean(),
        (list, rest, wide) => {
          const object = { ...rest, pdus: list }
          const texts = elementTexts(wide ? spaced(object) : JSON.stringify(object), 'pdus')
          expect(texts?.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(list)))
        },
      ),
    )
  })

  it('keeps how numbers were written', () => {
    expect(elementTexts('{"a":[1.0],"pdus":[ {"n":-0} ,{"n":1e3}, 1.0,[],"]"]}', 'pdus')).toEqual([
      '{"n":-0}',
      '{"n":1e3}',
      '1.0',
      '[]',
      '"]"',
    ])
  })

  it('takes the last of several, and nothing but a list', () => {
    expect(elementTexts('{"pdus":[1],"pdus":[2,3]}', 'pdus')).toEqual(['2', '3'])
    expect(elementTexts('{"pdus":[1],"pdus":{}}', 'pdus')).toBe(undefined)
    expect(elementTexts('{"p\\u0064us":[7]}', 'pdus')).toEqual(['7'])
    expect(elementTexts(' {} ', 'pdus')).toBe(undefined)
    expect(elementTexts('{"pdus":[]}', 'pdus')).toEqual([])
  })
})
