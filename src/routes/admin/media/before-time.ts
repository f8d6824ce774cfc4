import { ProtocolError } from '../../../core/errors.ts'

/** Earlier than any file. As seconds it is a time far in the future: who names a smaller one means seconds. */
const FIRST_MS = 30_000_000_000

/** @throws ProtocolError `M_INVALID_PARAM` for what is no time in milliseconds */
export function beforeTime(ts: number): number {
  if (ts >= FIRST_MS) return ts
  throw new ProtocolError('M_INVALID_PARAM', "'before_ts' is in 1970: it is a time in milliseconds, not in seconds.")
}
