import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expandPath } from '../../src/core/paths.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { adminEndpoints } from '../../src/routes/admin/index.ts'
import { appEndpoints } from '../../src/routes/app/index.ts'
import { identityEndpoints } from '../../src/routes/identity/index.ts'
import { wellKnownEndpoints } from '../../src/routes/well-known/index.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { mapConcurrently } from '../support/api.ts'
import { CLIENT_API, SERVER_API } from '../support/interfaces.ts'
import identity from './identity.json' with { type: 'json' }
import operations from './operations.json' with { type: 'json' }

/** The published specification's names of operations, with method and path, that this server serves. */
const expected: ReadonlyMap<string, string> = new Map(Object.entries(operations))
const mounted: readonly Endpoint[] = [
  ...wellKnownEndpoints,
  ...CLIENT_API,
  ...appEndpoints,
  ...adminEndpoints.filter(({ path }) => !path.startsWith('/')),
  ...SERVER_API,
  ...identityEndpoints,
]

/** What a parameter is called does not matter to a client. */
const shape = (line: string) => line.replace(/\{(?!root\})[^}]+\}/g, '{}')

/** An operation of the identity service's first generation may be another path of its successor. */
const lines: readonly string[] = mounted.flatMap(({ method, path, options }) =>
  [path, ...(options.also ?? []).filter((other) => /^P1\b/.test(other))].map((each) => shape(`${method} ${each}`)),
)

let server: AccountServer

beforeAll(async () => {
  server = await startAccountServer({ public_base_url: 'http://localhost:8008' })
})

afterAll(() => server.close())

describe('the list of operations', () => {
  it('is served in full', () => {
    expect([...expected].filter(([, line]) => !lines.includes(shape(line)))).toEqual([])
  })

  it('names everything that is served', () => {
    const known = new Set([...expected.values()].map(shape))
    expect(lines.filter((line) => !known.has(line))).toEqual([])
  })

  it('names nothing twice', () => {
    expect(new Set(lines).size).toBe(lines.length)
  })

  it('has nothing of the identity service that its interface does not name', () => {
    const named = new Set(identity.map(shape))
    expect(lines.filter((line) => /^\w+ (?:P1|P2|identity)\b/.test(line) && !named.has(line))).toEqual([])
    expect(named.size).toBe(40)
  })

  it('is reached under every path of both dialects', async () => {
    const ways = [...expected.values()].flatMap((line) => {
      const [method = '', path = ''] = line.split(' ')
      return expandPath(path).map(({ path: url }) => ({ method, url }))
    })
    const answers = await mapConcurrently(ways, 16, async ({ method, url }) => {
      const answer = await fetch(server.baseUrl + url.replace(/:\w+/g, 'x'), { method })
      const body = await answer.text()
      return answer.status !== 200 && body.includes('M_UNRECOGNIZED') ? [`${method} ${url}`] : []
    })
    expect(answers.flat()).toEqual([])
  })
})
