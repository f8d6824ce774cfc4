import { JsonBytes } from '../../../../core/json-bytes.ts'
import { wasOn } from '../position.ts'
import type { SlidingExtensions } from '../request.ts'
import type { ExtensionPart, ExtensionScene } from './extension.ts'

/** Which threads the user began to follow, or ceased to (MSC4308). The rest of a long list has an endpoint of its own. */
export async function threadSubscriptionsPart(
  { look }: ExtensionScene,
  { name, limit }: NonNullable<SlidingExtensions['threadSubscriptions']>,
): Promise<ExtensionPart | undefined> {
  const { sources, own, by, from, now } = look
  const after = wasOn(from, 'threadSubscriptions') ? from?.stream.ledger : undefined
  if (after !== undefined && sources.userLedger.since(by.userNid, after) === false) return undefined
  const { end, ...changes } = await own.threadSubscriptions.list(by, { from: now.ledger, to: after, limit })
  const count = [changes.subscribed, changes.unsubscribed].flatMap((rooms) => Object.keys(rooms as object)).length
  if (count === 0) return undefined
  const json = new JsonBytes().value(end === undefined ? changes : { ...changes, prev_batch: end })
  return { name, json, hasNews: true }
}
