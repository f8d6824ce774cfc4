import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { newAccessToken } from '../../../src/domain/accounts/access-tokens.ts'
import { encodeStreamToken } from '../../../src/domain/sync/token.ts'
import { addressReader } from '../../../src/http/client-address.ts'
import { askedHere } from '../../../src/http/nodes/asked-sync.ts'

const token = newAccessToken({ bytes: (count) => Buffer.alloc(count, 7) })

/** How often its headers were looked at. */
function asked(url: string) {
  let looks = 0
  const request = {
    method: 'GET',
    url,
    socket: { remoteAddress: '127.0.0.1' },
    get headers() {
      looks += 1
      return { authorization: `Bearer ${token}` }
    },
  }
  const found = askedHere(request as unknown as IncomingMessage, undefined, addressReader([]))
  return { isSync: found !== undefined, looks }
}

it('of all that is asked, only syncs are read', () => {
  const since = encodeStreamToken({ events: [7], ledger: 8, toDevice: 8, ephemeral: 9, run: '0123456789ab' })
  const { isSync, looks } = asked(`/_matrix/client/v3/sync?since=${since}&timeout=0`)
  expect([isSync, looks > 0]).toEqual([true, true])
  for (const url of [
    `/_matrix/client/v3/joined_rooms?since=${since}&timeout=0`,
    `/_matrix/client/v3/syncs?since=${since}&timeout=0`,
    `/_matrix/client/v3/sync?since=${since}&filter=${'x'.repeat(5_000)}`,
  ])
    expect({ url, ...asked(url) }).toEqual({ url, isSync: false, looks: 0 })
})
