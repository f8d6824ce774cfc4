import { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { KeyCounts } from '../../keys/key-counts.ts'
import type { SyncSources } from '../sources.ts'
import type { SlidingRequest } from './request.ts'

/** The answer of a request that ends where it began. @param lists how many rooms each list has, as JSON */
export type Unchanged = (by: Requester, request: SlidingRequest, lists: string) => JsonBytes | Promise<JsonBytes>

export function createUnchanged({ keyCounts }: Pick<SyncSources, 'keyCounts'>): Unchanged {
  return (by, request, lists) => {
    const { e2ee } = request.asked.extensions
    if (e2ee === undefined) return write(request, lists, undefined)
    const counts = keyCounts.of(by)
    return counts instanceof Promise
      ? counts.then((read) => write(request, lists, read))
      : write(request, lists, counts)
  }
}

/** What clients expect in every answer. */
function write({ pos = '', asked }: SlidingRequest, lists: string, counts: KeyCounts | undefined): JsonBytes {
  const { toDevice, e2ee } = asked.extensions
  let text = `{"pos":${JSON.stringify(pos)},"lists":${lists},"rooms":{},"extensions":{`
  if (toDevice) text += `${JSON.stringify(toDevice.name)}:{"next_batch":"${toDevice.since ?? 0}","events":[]}`
  if (e2ee && counts) {
    text += `${toDevice ? ',' : ''}${JSON.stringify(e2ee.name)}:{"device_lists":{"changed":[],"left":[]}`
    text += `,"device_one_time_keys_count":${counts.oneTimeJson}`
    text += `,"device_unused_fallback_key_types":${counts.unusedFallbackJson}}`
  }
  return new JsonBytes().text(`${text}}}`)
}
