import { JsonBytes } from '../../../../core/json-bytes.ts'
import { writeMessages } from '../../answer.ts'
import type { SlidingExtensions } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Messages to the device, with a token of their own: what a request names as its position is deleted (MSC4538). */
export async function toDevicePart(
  { look }: ExtensionScene,
  { name, limit, since }: NonNullable<SlidingExtensions['toDevice']>,
): Promise<ExtensionPart> {
  const { sources, by, now } = look
  // A position from before the database was restored may be ahead of it.
  const reading = sources.inboxes.read(by, Math.min(since ?? 0, now.ledger), now.ledger, limit)
  const mail = reading instanceof Promise ? await reading : reading
  const messages = mail.messages()
  const json = new JsonBytes().text(`{"next_batch":"${mail.upTo}","events":`)
  writeMessages(json, messages)
  return { name, json: json.text('}'), hasNews: messages.length > 0 }
}
