import fc from 'fast-check'
import { expect, it } from 'vitest'
import { folded, wordsOf } from '../../src/core/search-words.ts'

const segmenter = new Intl.Segmenter('und', { granularity: 'word' })

/** By the whole text, without a short way. */
function segmented(text: string): string[] {
  const words = [...segmenter.segment(folded(text))].filter(({ isWordLike }) => isWordLike)
  return [...new Set(words.map(({ segment }) => segment))]
}

const letters = fc.constantFrom(...'aZ09_ éßŁя١\u0301\u200d\u00ad\ufeff')
const signs = fc.constantFrom(...'.,;:\'"!?()[]{}<>@#/\\|&*+-=~`^%$\t\n\r\u00a0…’')
const character = fc.oneof({ weight: 3, arbitrary: letters }, { weight: 2, arbitrary: signs })

it('the words of a text are those that Unicode sees in it, with signs and spaces anywhere', () => {
  const texts = fc.array(character, { maxLength: 40 }).map((characters) => characters.join(''))
  fc.assert(
    fc.property(texts, (text) => {
      expect(wordsOf(text)).toEqual(segmented(text))
    }),
    { numRuns: 3_000 },
  )
})

it('a text of ASCII is folded as any other', () => {
  const slowly = (text: string) => folded(`${text}é`).slice(0, -1)
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
      expect(folded(text)).toBe(slowly(text))
    }),
  )
})
