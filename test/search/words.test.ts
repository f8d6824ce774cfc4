import { describe, expect, it } from 'vitest'
import { searchedWordsOf, wordsOf } from '../../src/core/search-words.ts'
import { cpuMs } from '../support/slowness.ts'

describe('the words of a text', () => {
  it.each([
    ['Martians and men', ['martians', 'and', 'men']],
    ['Crème Brûlée, ÅNGSTRÖM', ['creme', 'brulee', 'angstrom']],
    ['ﬁne ＡＢＣ', ['fine', 'abc']],
    ["don't e.g. 3.14", ["don't", 'e.g', '3.14']],
    ['東京都に', ['東京', '京都', '都に']],
    ['山', ['山']],
    ['한국어를 배워요', ['한국', '국어', '어를', '배워', '워요']],
    ['русский ТЕКСТ', ['русскии', 'текст']],
    ['', []],
    [' \u0000\u0001!?…', []],
    ['twice Twice TWICE', ['twice']],
  ])('%j are %j', (text, words) => {
    expect(wordsOf(text).sort()).toEqual([...words].sort())
  })

  it('are found in the middle of a sentence of any script', () => {
    for (const [sentence, term] of [
      ['昨日東京へ行きました', '東京'],
      ['今天下雪了', '雪'],
      ['我今天去了北京大学', '北京'],
      ['저는 한국에서 왔어요', '한국'],
      ['ฉันรักประเทศไทยมาก', 'ประเทศ'],
    ] as const) {
      const words = new Set(searchedWordsOf(sentence))
      expect(wordsOf(term).filter((word) => !words.has(word))).toEqual([])
    }
  })

  it('are bounded in number and length, also of hostile texts', () => {
    const texts = [
      'x'.repeat(1_000_000),
      Array.from({ length: 100_000 }, (_, n) => n).join(' '),
      '\u0300'.repeat(100_000),
      '\ud800'.repeat(100_000),
      '山'.repeat(100_000),
    ]
    for (const text of texts) {
      const words = wordsOf(text)
      expect(words.length).toBeLessThanOrEqual(500)
      expect(Math.max(0, ...words.map(({ length }) => length))).toBeLessThanOrEqual(50)
      expect(cpuMs(() => wordsOf(text))).toBeLessThan(1_000)
    }
  })
})
