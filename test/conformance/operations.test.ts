import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expandPath } from '../../src/core/paths.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { clientEndpoints } from '../../src/routes/client/index.ts'
import { wellKnownEndpoints } from '../../src/routes/well-known/index.ts'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import operations from './operations.json' with { type: 'json' }

/** The published specification's names of operations, with method and path, that this server serves. */
const expected: ReadonlyMap<string, string> = new Map(Object.entries(operations))
const mounted: readonly Endpoint[] = [...wellKnownEndpoints, ...clientEndpoints]

/** What a parameter is called does not matter to a client. */
const shape = (line: string) => line.replace(/\{(?!root\})[^}]+\}/g, '{}')

const lineOf = ({ method, path }: Endpoint) => shape(`${method} ${path}`)

let server: AccountServer

beforeAll(async () => {
  server = await startAccountServer()
})

afterAll(() => server.close())

describe('the list of operations', () => {
  it('is served in full', () => {
    const lines = new Set(mounted.map(lineOf))
    expect([...expected].filter(([, line]) => !lines.has(shape(line)))).toEqual([])
  })

  it('names everything that is served', () => {
    const lines = new Set([...expected.values()].map(shape))
    expect(mounted.map(lineOf).filter((line) => !lines.has(line))).toEqual([])
  })

  it('names nothing twice', () => {
    expect(new Set(mounted.map(lineOf)).size).toBe(mounted.length)
  })

  it('is reached under every path of both dialects', async () => {
    const unreached: string[] = []
    for (const line of expected.values()) {
      const [method = '', path = ''] = line.split(' ')
      for (const { path: url } of expandPath(path)) {
        const answer = await fetch(server.baseUrl + url.replace(/:\w+/g, 'x'), { method })
        const body = answer.status === 200 ? '' : await answer.text()
        if (body.includes('M_UNRECOGNIZED')) unreached.push(`${method} ${url}`)
      }
    }
    expect(unreached).toEqual([])
  })
})
