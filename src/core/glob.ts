/** Whether a text fits a compiled pattern. Takes time linear in the text, whatever the pattern. */
export type TextMatcher = (text: string) => boolean

const SPECIAL = /[*?]/

/** Stands for `?` among the code points of a pattern. */
const ANY = -1

/** The longest piece with `?`, because it is compared at each place of the text; a longer one between stars matches nothing. */
const MAX_COMPARED = 128

/** The part of a pattern between two stars. */
interface Piece {
  readonly points: readonly number[]
  /** For each prefix, the length of its longest proper prefix that is also its suffix. Absent where the piece has a `?`. */
  readonly borders: readonly number[] | undefined
}

/** Whether a match from `start` up to `end` is acceptable. */
type Fits = (start: number, end: number) => boolean

const ANYWHERE: Fits = () => true

/** A pattern cut at its stars. `tail` is undefined when there is no star. */
interface Pattern {
  readonly head: Piece
  readonly middle: readonly Piece[]
  readonly tail: Piece | undefined
}

/**
 * A glob over the whole text, upper and lower case alike: `*` stands for any characters, `?` for one
 * (appendices, "Glob-style matching").
 */
export function compileGlob(glob: string): TextMatcher {
  if (SPECIAL.test(glob)) return compileGlobs([glob])
  const folded = glob.toLowerCase()
  return (text) => text === folded || text.toLowerCase() === folded
}

/** Whether any of the globs matches: one pass over the text for all that are plain, one more for each that is not. */
export function compileGlobs(globs: readonly string[]): TextMatcher {
  const folded = globs.map((glob) => glob.toLowerCase())
  const plain = new Set(folded.filter((glob) => !SPECIAL.test(glob)))
  const patterns = folded.filter((glob) => SPECIAL.test(glob)).map((glob) => parse(glob, true))
  return (text) => {
    const foldedText = text.toLowerCase()
    if (plain.has(foldedText)) return true
    if (patterns.length === 0) return false
    const points = codePoints(foldedText)
    return patterns.some((pattern) => matchesWhole(pattern, points))
  }
}

/** As {@link compileGlob}, but matching a part of the text that starts and ends at word boundaries (push rules, `content.body`). */
export function compileWordGlob(glob: string): TextMatcher {
  const pattern = parse(glob.toLowerCase(), true)
  return (text) => matchesWords(pattern, codePoints(text.toLowerCase()))
}

/** As {@link compileWordGlob}, for a word in which nothing is special. */
export function compileWord(word: string): TextMatcher {
  const pattern: Pattern = { head: pieceOf(word.toLowerCase(), false), middle: [], tail: undefined }
  return (text) => matchesWords(pattern, codePoints(text.toLowerCase()))
}

/** A text in lower case, and its code points once a search needs them. */
export class FoldedText {
  readonly folded: string
  #points: Int32Array | undefined

  constructor(text: string) {
    this.folded = text.toLowerCase()
  }

  get points(): Int32Array {
    this.#points ??= codePoints(this.folded)
    return this.#points
  }
}

/** A pattern for many texts that other patterns are compared with too. */
export interface TextPattern {
  matches(text: FoldedText): boolean
  /** About how many characters {@link TextPattern.matches} compares at most. */
  steps(text: FoldedText): number
}

/**
 * Compiles a pattern for texts that are folded once.
 *
 * @param how `whole`: as {@link compileGlob}; `words`: as {@link compileWordGlob}; `word`: as {@link compileWord}
 */
export function compileText(glob: string, how: 'whole' | 'words' | 'word'): TextPattern {
  const pattern = parseText(glob, how === 'word')
  const each = [pattern.head, ...pattern.middle, ...(pattern.tail ? [pattern.tail] : [])].map(stepsPerCharacter)
  const perCharacter = each.reduce((sum, steps) => sum + steps, 0)
  const fits = how === 'whole' ? matchesWhole : matchesWords
  const isPlain = how === 'whole' && !SPECIAL.test(glob)
  const folded = glob.toLowerCase()
  return {
    matches: isPlain ? (text) => text.folded === folded : (text) => fits(pattern, text.points),
    steps: isPlain ? () => 1 : (text) => text.folded.length * perCharacter,
  }
}

function parseText(glob: string, isWord: boolean): Pattern {
  const folded = glob.toLowerCase()
  return isWord ? { head: pieceOf(folded, false), middle: [], tail: undefined } : parse(folded, true)
}

function stepsPerCharacter({ points, borders }: Piece): number {
  return borders === undefined ? Math.min(points.length, MAX_COMPARED) : 1
}

/** A pattern where `*` alone is special and case counts (event types in filters). */
export function compileWildcard(wildcard: string): TextMatcher {
  const [start = '', end, ...more] = wildcard.split('*')
  if (end === undefined) return (text) => text === wildcard
  if (more.length === 0) {
    const shortest = start.length + end.length
    return (text) => text.length >= shortest && text.startsWith(start) && text.endsWith(end)
  }
  const pattern = parse(wildcard, false)
  return (text) => matchesWhole(pattern, codePoints(text))
}

/**
 * Whether a word may start or end between two characters: unless both are in `[A-Za-z0-9_]`.
 * Takes code points of lower-case text, or NaN beyond its ends.
 */
export function isWordBoundary(before: number, after: number): boolean {
  return !isWordCharacter(before) || !isWordCharacter(after)
}

function isWordCharacter(point: number): boolean {
  return (point >= 0x61 && point <= 0x7a) || (point >= 0x30 && point <= 0x39) || point === 0x5f
}

function parse(glob: string, marksAreSpecial: boolean): Pattern {
  const [head = '', ...rest] = glob.replace(/\*+/g, '*').split('*')
  const tail = rest.pop()
  return {
    head: pieceOf(head, marksAreSpecial),
    middle: rest.map((text) => pieceOf(text, marksAreSpecial)),
    tail: tail === undefined ? undefined : pieceOf(tail, marksAreSpecial),
  }
}

function pieceOf(text: string, marksAreSpecial: boolean): Piece {
  const hasAny = marksAreSpecial && text.includes('?')
  const points: number[] = []
  for (const character of text) points.push(hasAny && character === '?' ? ANY : character.codePointAt(0)!)
  return { points, borders: hasAny ? undefined : bordersOf(points) }
}

function bordersOf(points: readonly number[]): number[] {
  const borders = [0]
  let border = 0
  for (let at = 1; at < points.length; at++) {
    while (border > 0 && points[border] !== points[at]) border = borders[border - 1]!
    if (points[border] === points[at]) border++
    borders.push(border)
  }
  return borders
}

/** Each star takes as little as possible: if any choice leads to a match, this one does. */
function matchesWhole(pattern: Pattern, text: Int32Array): boolean {
  const { head, tail } = pattern
  if (!standsAt(head, text, 0)) return false
  if (tail === undefined) return head.points.length === text.length
  const end = findMiddle(pattern, text, head.points.length)
  const tailStart = text.length - tail.points.length
  return end !== -1 && end <= tailStart && standsAt(tail, text, tailStart)
}

function matchesWords(pattern: Pattern, text: Int32Array): boolean {
  const { head, tail } = pattern
  const boundaryAt = (at: number) => isWordBoundary(text[at - 1] ?? Number.NaN, text[at] ?? Number.NaN)
  if (tail === undefined) return find(head, text, 0, (start, end) => boundaryAt(start) && boundaryAt(end)) !== -1
  const headEnd = find(head, text, 0, boundaryAt)
  const end = headEnd === -1 ? -1 : findMiddle(pattern, text, headEnd)
  return end !== -1 && (tail.points.length === 0 || find(tail, text, end, (_, at) => boundaryAt(at)) !== -1)
}

/** Where the last middle piece ends when each is taken at its first place after the one before; -1 when one is missing. */
function findMiddle(pattern: Pattern, text: Int32Array, from: number): number {
  let at = from
  for (const piece of pattern.middle) {
    at = find(piece, text, at, ANYWHERE)
    if (at === -1) return -1
  }
  return at
}

function standsAt(piece: Piece, text: Int32Array, at: number): boolean {
  const { points } = piece
  if (at < 0 || at + points.length > text.length) return false
  for (let index = 0; index < points.length; index++) {
    if (points[index] !== ANY && points[index] !== text[at + index]) return false
  }
  return true
}

/** The first place from `from` on where the piece stands and `fits` agrees: its end, or -1. */
function find(piece: Piece, text: Int32Array, from: number, fits: Fits): number {
  const { points, borders } = piece
  return borders === undefined || points.length === 0
    ? findByComparing(piece, text, from, fits)
    : findLiteral(points, borders, text, from, fits)
}

function findByComparing(piece: Piece, text: Int32Array, from: number, fits: Fits): number {
  const { length } = piece.points
  if (length > MAX_COMPARED) return -1
  for (let at = from; at + length <= text.length; at++) {
    if (standsAt(piece, text, at) && fits(at, at + length)) return at + length
  }
  return -1
}

/** Knuth, Morris and Pratt's search: no character of the text is read twice. */
function findLiteral(
  points: readonly number[],
  borders: readonly number[],
  text: Int32Array,
  from: number,
  fits: Fits,
): number {
  let matched = 0
  for (let at = from; at < text.length; at++) {
    while (matched > 0 && points[matched] !== text[at]) matched = borders[matched - 1]!
    if (points[matched] === text[at]) matched++
    if (matched < points.length) continue
    if (fits(at + 1 - matched, at + 1)) return at + 1
    matched = borders[matched - 1]!
  }
  return -1
}

function codePoints(text: string): Int32Array {
  const points = new Int32Array(text.length)
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const point = text.codePointAt(at)!
    if (point > 0xffff) at++
    points[count++] = point
  }
  return points.subarray(0, count)
}
