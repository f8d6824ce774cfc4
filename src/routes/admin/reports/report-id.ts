import { ProtocolError } from '../../../core/errors.ts'

/** The number of a report in a path. @throws ProtocolError `M_INVALID_PARAM` */
export function reportIdOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new ProtocolError('M_INVALID_PARAM', 'The id of a report is a number.')
}
