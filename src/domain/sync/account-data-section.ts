import type { EventMatcher } from '../../core/filter.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { type AccountDataRow, accountDataOf } from '../../store/accounts/account-data.ts'
import { MAX_ANSWER_PART_BYTES } from '../limits.ts'
import type { Look } from './look.ts'

/** The entries that a filter wants, or may want once their contents are loaded. */
export function wantedData(pieces: readonly AccountDataRow[], filter: EventMatcher): readonly AccountDataRow[] {
  if (filter.matchesAll || pieces.length === 0) return pieces
  return pieces.filter((piece) => {
    if (piece.json !== undefined) return filter.eventMatches(piece)
    const { type } = piece
    return filter.eventMatches({ type, content: {} }) || filter.eventMatches({ type, content: { url: '' } })
  })
}

/** Writes `,"account_data":{"events":[...]}`, or nothing. Contents that were too large to hold are loaded while they are sent. */
export function writeAccountData(
  out: JsonBytes,
  look: Look,
  pieces: readonly AccountDataRow[],
  filter: EventMatcher,
): void {
  if (pieces.length > 0) writeDataList(out.text(',"account_data":{"events":'), look, pieces, filter).text('}')
}

/** Writes the list alone. */
export function writeDataList(
  out: JsonBytes,
  look: Look,
  pieces: readonly AccountDataRow[],
  filter: EventMatcher,
): JsonBytes {
  const read = pieces.filter(({ json }) => json !== undefined)
  const left = pieces.filter(({ json }) => json === undefined)
  writePieces(out.text('['), read, true)
  if (left.length > 0) out.later(() => piecesLeft(look, left, filter, read.length === 0))
  return out.text(']')
}

function writePieces(out: JsonBytes, pieces: readonly AccountDataRow[], isFirst: boolean): void {
  pieces.forEach(({ type, json = '{}' }, index) => {
    out.text(`${isFirst && index === 0 ? '' : ','}{"type":${JSON.stringify(type)},"content":${json}}`)
  })
}

async function* piecesLeft(
  { sources, by }: Look,
  pieces: readonly AccountDataRow[],
  filter: EventMatcher,
  isFirst: boolean,
): AsyncGenerator<JsonBytes> {
  let isNone = isFirst
  for (const some of inParts(pieces)) {
    const read = (await accountDataOf(sources.db.bulk, by.userNid, some)).filter((piece) => filter.eventMatches(piece))
    if (read.length === 0) continue
    const part = new JsonBytes()
    writePieces(part, read, isNone)
    isNone = false
    yield part
  }
}

function* inParts(pieces: readonly AccountDataRow[]): Generator<AccountDataRow[]> {
  let part: AccountDataRow[] = []
  let bytes = 0
  for (const piece of pieces) {
    part.push(piece)
    bytes += piece.bytes
    if (bytes < MAX_ANSWER_PART_BYTES) continue
    yield part
    part = []
    bytes = 0
  }
  if (part.length > 0) yield part
}
