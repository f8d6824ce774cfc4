import fc from 'fast-check'
import { describe, it } from 'vitest'
import { compileGlob, compileWildcard, compileWordGlob, isWordBoundary } from '../../src/core/glob.ts'

/** The definition itself: a star takes any number of characters, a mark one. */
function fits(glob: readonly string[], text: readonly string[], marksAreSpecial: boolean): boolean {
  const [first, ...rest] = glob
  if (first === undefined) return text.length === 0
  if (first === '*')
    return text.some((_, at) => fits(rest, text.slice(at), marksAreSpecial)) || fits(rest, [], marksAreSpecial)
  return (
    text.length > 0 &&
    (first === text[0] || (marksAreSpecial && first === '?')) &&
    fits(rest, text.slice(1), marksAreSpecial)
  )
}

function someWordsFit(glob: readonly string[], text: readonly string[]): boolean {
  const code = (at: number) => text[at]?.codePointAt(0) ?? Number.NaN
  const boundaries = Array.from({ length: text.length + 1 }, (_, at) => at).filter((at) =>
    isWordBoundary(code(at - 1), code(at)),
  )
  return boundaries.some((start) => boundaries.some((end) => end >= start && fits(glob, text.slice(start, end), true)))
}

const glob = fc.array(fc.constantFrom('a', 'b', '*', '?', ' ', '😀'), { maxLength: 8 })
const text = fc.array(fc.constantFrom('a', 'b', ' ', '😀'), { maxLength: 8 })

describe('globs mean what their definition says', () => {
  it('over the whole text', () => {
    fc.assert(
      fc.property(glob, text, (g, t) => compileGlob(g.join(''))(t.join('')) === fits(g, t, true)),
      { numRuns: 3000 },
    )
  })

  it('over words', () => {
    fc.assert(
      fc.property(glob, text, (g, t) => compileWordGlob(g.join(''))(t.join('')) === someWordsFit(g, t)),
      { numRuns: 3000 },
    )
  })

  it('with stars alone', () => {
    fc.assert(
      fc.property(glob, text, (g, t) => compileWildcard(g.join(''))(t.join('')) === fits(g, t, false)),
      { numRuns: 3000 },
    )
  })

  it('when what is looked for repeats itself', () => {
    const letters = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 60 }).map((list) => list.join(''))
    const period = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 9 }).map((list) => list.join(''))
    fc.assert(
      fc.property(period, letters, (piece, text) => compileGlob(`*${piece}*`)(text) === text.includes(piece)),
      { numRuns: 3000 },
    )
  })

  it('in long pieces with marks', () => {
    const long = fc.array(fc.constantFrom('a', 'b', '?'), { minLength: 30, maxLength: 70 })
    const around = fc.array(fc.constantFrom('a', 'b'), { maxLength: 20 })
    fc.assert(
      fc.property(long, around, around, fc.boolean(), (piece, before, after, spoil) => {
        const filled: string[] = piece.map((character) => (character === '?' ? 'b' : character))
        if (spoil) filled[piece.length >> 1] = 'c'
        const words = [...before, ...filled, ...after]
        return compileGlob(`*${piece.join('')}*`)(words.join('')) === fits(['*', ...piece, '*'], words, true)
      }),
      { numRuns: 300 },
    )
  })
})
