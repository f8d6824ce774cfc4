/** Words of a text, at most, and characters of one. What is longer is cut off. */
const MAX_WORDS = 500
const MAX_WORD_CHARS = 50
const MAX_TEXT_CHARS = 20_000

/** Scripts that are written without spaces, and Korean, which puts endings to words: any two neighbouring characters are a word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々]+/gu

const segmenter = new Intl.Segmenter('und', { granularity: 'word' })

/** As `wordsOf`, of a text that is searched: it is also found by a single character of a script without spaces. */
export function searchedWordsOf(text: string): string[] {
  const characters =
    folded(text.slice(0, MAX_TEXT_CHARS))
      .match(UNSPACED)
      ?.flatMap((run) => [...run]) ?? []
  return [...new Set([...wordsOf(text), ...characters])].slice(0, MAX_WORDS)
}

/**
 * The distinct words of a text, as searches compare them: in lower case and without accents. Texts and search terms are cut alike, so that a
 * term is found in the middle of a sentence in any script.
 */
export function wordsOf(text: string): string[] {
  const words = new Set<string>()
  const plain = folded(text.slice(0, MAX_TEXT_CHARS))
  for (const [run] of plain.matchAll(UNSPACED)) {
    for (const pair of pairsOf(run)) if (words.size < MAX_WORDS) words.add(pair)
  }
  for (const token of plain.replace(UNSPACED, ' ').split(SPACES)) {
    for (const word of wordsOfToken(token)) if (words.size < MAX_WORDS) words.add(word.slice(0, MAX_WORD_CHARS))
    if (words.size === MAX_WORDS) break
  }
  return [...words]
}

/** No word goes beyond these. */
const SPACES = /[ \t\n\r]+/
/** A plain word, with signs of punctuation before and after it. */
const PLAIN = /^[!-/:-@[-^`{-~]*([a-z0-9]+)[!-/:-@[-^`{-~]*$/

/** The words of a text without spaces. Most are plain, and the segmenter takes many times as long, and memory that it does not show. */
function wordsOfToken(token: string): readonly string[] {
  const plain = PLAIN.exec(token)?.[1]
  if (plain !== undefined) return [plain]
  const words: string[] = []
  for (const { segment, isWordLike } of segmenter.segment(token)) if (isWordLike) words.push(segment)
  return words
}

const ASCII = /^[\0-\x7f]*$/

/** The text in lower case, in compatibility form, without the marks that Latin, Greek and Cyrillic letters carry. */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  return (
    text
      // Halves of surrogate pairs.
      .replace(/\p{Surrogate}/gu, '')
      .normalize('NFKD')
      .replace(/[\u0300-\u036f]/g, '')
      .normalize('NFC')
      .toLowerCase()
  )
}

function pairsOf(run: string): string[] {
  const characters = [...run]
  if (characters.length === 1) return characters
  return characters.slice(1).map((character, index) => characters[index] + character)
}
