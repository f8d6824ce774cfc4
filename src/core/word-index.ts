/** Finds the values of all words in a text, at word boundaries, ignoring case. */
export type WordIndex<T> = (text: string) => Set<T>

/** Longer words are never found. The limit bounds the steps for each token of a text. */
const MAX_WORD_LENGTH = 256

interface Node<T> {
  readonly next: Map<string, Node<T>>
  readonly values: T[]
}

/**
 * Compiles words and their values, so that one pass searches a text for all of them, in time linear in the text.
 *
 * Words and texts are cut into runs of word characters and single other characters: a word stands between
 * boundaries exactly where its tokens follow each other in the text.
 */
export function indexWords<T>(words: Iterable<readonly [word: string, value: T]>): WordIndex<T> {
  const root: Node<T> = { next: new Map(), values: [] }
  for (const [word, value] of words) {
    if (word !== '' && word.length <= MAX_WORD_LENGTH) nodeOf(root, tokensOf(word)).values.push(value)
  }
  return (text) => {
    const found = new Set<T>()
    const tokens = tokensOf(text)
    for (let start = 0; start < tokens.length; start++) {
      let node = root.next.get(tokens[start]!)
      for (let at = start + 1; node !== undefined; at++) {
        for (const value of node.values) found.add(value)
        node = at < tokens.length ? node.next.get(tokens[at]!) : undefined
      }
    }
    return found
  }
}

function nodeOf<T>(root: Node<T>, tokens: readonly string[]): Node<T> {
  let node = root
  for (const token of tokens) {
    const next = node.next.get(token) ?? { next: new Map(), values: [] }
    node.next.set(token, next)
    node = next
  }
  return node
}

function tokensOf(text: string): string[] {
  return text.toLowerCase().match(/\w+|\W/g) ?? []
}
