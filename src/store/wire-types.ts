import type pg from 'pg'

/**
 * Readers for Postgres' text result format. The driver's binary format is not used: it passes every value through UTF-8
 * and so damages bytes from 0x80 on.
 *
 * Only the types that this database's columns and aggregates have are here; an unknown one is a defect and throws.
 */
const BOOL = 16
const BYTEA = 17
const NAME = 19
const INT8 = 20
const INT2 = 21
const INT4 = 23
const TEXT = 25
const OID = 26
const FLOAT8 = 701
const UNKNOWN = 705
const INT4_ARRAY = 1007
const INT8_ARRAY = 1016
const VARCHAR = 1043
const VOID = 2278

const readText = (value: string): string => value

/** `{1,2,3}`; no nulls, one dimension. */
function readNumbers(value: string): number[] {
  return value === '{}' ? [] : value.slice(1, -1).split(',').map(Number)
}

/** Every int8 here is a position, an id or a time in milliseconds, all below 2^53. */
const READERS = new Map<number, (value: string) => unknown>([
  [BOOL, (value) => value === 't'],
  [BYTEA, (value) => Buffer.from(value.slice(2), 'hex')],
  [INT8, Number],
  [INT2, Number],
  [INT4, Number],
  [OID, Number],
  [FLOAT8, Number],
  [TEXT, readText],
  [VARCHAR, readText],
  [NAME, readText],
  [UNKNOWN, readText],
  [VOID, () => undefined],
  [INT4_ARRAY, readNumbers],
  [INT8_ARRAY, readNumbers],
])

function missing(oid: number): (value: string) => never {
  return () => {
    throw new Error(`no reader for Postgres type ${oid}: add it to wire-types.ts or cast it in the query`)
  }
}

export const WIRE_TYPES = {
  getTypeParser: (oid: number) => READERS.get(oid) ?? missing(oid),
} as unknown as pg.CustomTypesConfig
