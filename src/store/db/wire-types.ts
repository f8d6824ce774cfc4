import pg from 'pg'

/**
 * Readers for what Postgres sends, in its text format. (The driver decodes every field as UTF-8 before any reader sees it, so the
 * binary format would lose each byte above 0x7f that is not part of a character.)
 * Only the types of this database's columns and aggregates are here; any other type throws.
 */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const INT2 = 21
const INT4 = 23
const TEXT = 25
const FLOAT8 = 701
const VARCHAR = 1043
const NAME = 19
const UNKNOWN = 705
const OID = 26
const INT4_ARRAY = 1007
const TEXT_ARRAY = 1009
const INT8_ARRAY = 1016
const VOID = 2278

const asText = (text: string): string => text

/** `{1,2,3}`; no array here holds NULL. */
const asNumbers = (text: string): number[] => JSON.parse(`[${text.slice(1, -1)}]`)

const READERS = new Map<number, (text: string) => unknown>([
  [BOOL, (text) => text === 't'],
  // `\x` and hexadecimal digits
  [BYTEA, (text) => Buffer.from(text.slice(2), 'hex')],
  // Every int8 here is a position, an id or a time in milliseconds, all below 2^53.
  [INT8, Number],
  [INT2, Number],
  [INT4, Number],
  [OID, Number],
  [FLOAT8, Number],
  [TEXT, asText],
  [VARCHAR, asText],
  [NAME, asText],
  [UNKNOWN, asText],
  [VOID, () => undefined],
  [INT4_ARRAY, asNumbers],
  [INT8_ARRAY, asNumbers],
  [TEXT_ARRAY, pg.types.getTypeParser(TEXT_ARRAY as number, 'text')],
])

function missing(oid: number): (text: string) => never {
  return () => {
    throw new Error(`no reader for Postgres type ${oid}: add it to wire-types.ts or cast it in the query`)
  }
}

export const WIRE_TYPES = {
  getTypeParser: (oid: number) => READERS.get(oid) ?? missing(oid),
} as unknown as pg.CustomTypesConfig
