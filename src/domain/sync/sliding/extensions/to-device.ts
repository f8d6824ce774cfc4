import { JsonBytes } from '../../../../core/json-bytes.ts'
import type { Mail } from '../../../e2e/inboxes.ts'
import { writeMessages } from '../../answer.ts'
import type { SlidingExtensions } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Messages to the device, with a token of their own: what a request names as its position is deleted (MSC4538). */
export function toDevicePart(
  { look }: ExtensionScene,
  { name, limit, since }: NonNullable<SlidingExtensions['toDevice']>,
): ExtensionPart | Promise<ExtensionPart> {
  const { sources, by, now } = look
  // A position from before the database was restored may be ahead of it.
  const reading = sources.inboxes.read(by, Math.min(since ?? 0, now.ledger), now.ledger, limit)
  return reading instanceof Promise ? reading.then((mail) => write(name, mail)) : write(name, reading)
}

function write(name: string, mail: Mail): ExtensionPart {
  const messages = mail.messages()
  const json = new JsonBytes().text(`{"next_batch":"${mail.upTo}","events":`)
  writeMessages(json, messages)
  return { name, json: json.text('}'), hasNews: messages.length > 0 }
}
