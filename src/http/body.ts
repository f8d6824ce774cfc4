import { ProtocolError } from '../core/errors.ts'
import { JsonTooDeepError, type ReadJson, readJson } from '../core/json.ts'

/** Reads a request's bytes as JSON, whatever content type they were sent with. An empty body is `{}` where that is allowed. */
export function parseBody(raw: unknown, emptyAllowed: boolean): ReadJson {
  if (!Buffer.isBuffer(raw) || raw.length === 0) {
    if (emptyAllowed) return { value: {}, offence: undefined }
    throw new ProtocolError('M_NOT_JSON', 'The request has no body; this endpoint wants a JSON object.')
  }
  try {
    return readJson(raw)
  } catch (error) {
    if (error instanceof JsonTooDeepError) {
      throw new ProtocolError('M_BAD_JSON', 'The request body is nested too deeply.')
    }
    throw new ProtocolError('M_NOT_JSON', 'The request body is not JSON.')
  }
}
