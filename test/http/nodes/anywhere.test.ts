import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { expandPath } from '../../../src/core/paths.ts'
import { MAX_KEPT_BODY_BYTES } from '../../../src/domain/limits/cluster.ts'
import { type Endpoint, endpoint } from '../../../src/http/endpoint.ts'
import { tableOf } from '../../../src/http/nodes/anywhere.ts'
import { anywhereEndpoints } from '../../../src/routes/client/standby.ts'
import { CLIENT_API, PAGES, SERVER_API } from '../../support/interfaces.ts'

const isAnywhere = tableOf(anywhereEndpoints)
const asked = (method: string, url: string, headers: IncomingMessage['headers'] = {}) =>
  isAnywhere({ method, url, headers } as IncomingMessage)

const urlsOf = ({ path, options }: Endpoint): string[] =>
  [path, ...(options.also ?? [])].flatMap(expandPath).map((route) => route.path.replace(/:\w+/g, '%21x%3Ay'))

describe('what may be answered anywhere', () => {
  it('only reads, and asks nobody who they are', () => {
    expect(anywhereEndpoints.length).toBeGreaterThan(10)
    for (const { method, path, options } of anywhereEndpoints) {
      const { uia, streamed, recorded } = options
      // The only one that asks by a body.
      expect({ path, method }).toEqual({ path, method: path === 'C/keys/query' ? 'POST' : 'GET' })
      expect({ path, uia, streamed, recorded }).toEqual({ path })
      expect(['user', 'optional', 'none']).toContain(options.auth)
      // Attempts that guess are counted where all of them come.
      expect([undefined, 'other', 'media']).toContain(options.limited)
    }
  })

  it('is known by each of its paths, with and without a query', () => {
    for (const one of anywhereEndpoints) {
      for (const url of urlsOf(one)) {
        const ask = (path: string) => asked(one.method, path, one.method === 'GET' ? {} : { 'content-length': '2' })
        expect({ url, is: [url, `${url}/`, `${url}?a=b/c`].map(ask) }).toEqual({ url, is: [true, true, true] })
        expect(asked('PUT', url)).toBe(false)
        expect(ask(`${url}/more/of/it/than/there/is`)).toBe(false)
      }
    }
  })

  it('is no other operation', () => {
    const others = [...CLIENT_API, ...SERVER_API, ...PAGES].filter(
      ({ method, options }) => method === 'GET' && !options.anywhere,
    )
    expect(others.flatMap(urlsOf).filter((url) => asked('GET', url))).toEqual([])
  })

  it('comes without a body, or with one that is kept', () => {
    const query = '/_matrix/client/v3/keys/query'
    expect(asked('POST', query, { 'content-length': `${MAX_KEPT_BODY_BYTES}` })).toBe(true)
    for (const headers of [
      {},
      { 'content-length': `${MAX_KEPT_BODY_BYTES + 1}` },
      { 'transfer-encoding': 'chunked' },
      { 'content-length': '2', expect: '100-continue' },
    ])
      expect(asked('POST', query, headers)).toBe(false)
    const [url = ''] = urlsOf(anywhereEndpoints.find(({ method }) => method === 'GET')!)
    expect(asked('GET', url, { 'content-length': '0' })).toBe(true)
    for (const headers of [{ 'content-length': '1' }, { 'transfer-encoding': 'chunked' }, { expect: '100-continue' }])
      expect(asked('GET', url, headers)).toBe(false)
  })

  it('gets nothing that a node which stands by does not have', () => {
    // @ts-expect-error nothing that writes is there
    const wrong = endpoint('GET C/wrong', { auth: 'user', anywhere: true }, ({ requester }, { rooms }) => [
      rooms,
      requester,
    ])
    const right = endpoint('GET C/right', { auth: 'user' }, ({ requester }, { rooms }) => [rooms, requester])
    expect([wrong.options.anywhere, right.options.anywhere]).toEqual([true, undefined])
  })
})
