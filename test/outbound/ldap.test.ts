import { type AddressInfo, createServer } from 'node:net'
import { expect, it, vi } from 'vitest'
import { DirectoryFailure } from '../../src/outbound/directory/directory.ts'
import { createLdapDirectory } from '../../src/outbound/directory/ldap.ts'

/** An extended response that agrees to StartTLS (RFC 4511, sections 4.12 and 4.14). */
const agreed = (messageId: number) => Buffer.from([0x30, 12, 2, 1, messageId, 0x78, 7, 0x0a, 1, 0, 4, 0, 4, 0])

it('a directory that falls silent after StartTLS holds no question for ever', async () => {
  const server = createServer()
  const asked = new Promise<void>((resolve) => {
    server.on('connection', (socket) => {
      socket.on('error', () => {})
      socket.once('data', (request) => {
        socket.once('data', () => resolve())
        socket.write(agreed(request[4]!))
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `ldap://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ldap = { url, start_tls: true, base_dn: 'dc=example', user_attribute: 'uid' }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const directory = createLdapDirectory({ ldap } as never)!
    const answer = directory.verify('alice', 'rabbit hole').catch((error: unknown) => error)
    await asked
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await answer).toBeInstanceOf(DirectoryFailure)
  } finally {
    vi.useRealTimers()
    server.close()
  }
})
