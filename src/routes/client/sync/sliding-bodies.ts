import type { ReadSliding } from '../../../domain/standby/sync-desk.ts'
import type { MergedBody, SlidingRequests, UnstableBody } from '../../../domain/sync/sliding/read-request.ts'
import { bodyReader } from '../../../http/body.ts'
import { CLIENT_CODES } from '../../../http/role.ts'
import { mustBeKeys } from './sliding-shapes.ts'
import { slidingSync } from './sliding-sync.ts'
import { unstableSlidingSync } from './unstable-sliding-sync.ts'

/** Reads sliding syncs that another node holds, as their endpoints do. */
export function createSlidingReader(requests: SlidingRequests): ReadSliding {
  const merged = bodyReader(slidingSync, CLIENT_CODES)!
  const unstable = bodyReader(unstableSlidingSync, CLIENT_CODES)!
  return ({ form, body: text }, circumstances) => {
    const raw = { body: Buffer.from(text), headers: {}, query: {} }
    if (form === 'unstable') return requests.unstable(unstable.parse(raw).value as UnstableBody, circumstances)
    const body = merged.parse(raw).value as unknown as MergedBody
    mustBeKeys(body.lists)
    return requests.merged(body, circumstances)
  }
}
