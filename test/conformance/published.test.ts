import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AccountServer, startAccountServer } from '../support/account-server.ts'
import { mapConcurrently } from '../support/api.ts'
import { CLIENT_API } from '../support/interfaces.ts'
import { PROJECT_ROOT } from '../support/project.ts'
import { readProofs } from './proofs.ts'
import { operationOf, PUBLISHED, WITHOUT_FEATURE } from './published.ts'

/** This server calls these, and serves none of them. */
const isOutbound = (line: string) => /\/_matrix\/(?:app|push|policy)\//.test(line)

/** What needs nothing but the request. */
const WITHOUT_SERVICES = ['GET C/account/whoami', 'GET CU/hearth.caller']

let server: AccountServer

beforeAll(async () => {
  server = await startAccountServer({ public_base_url: 'http://localhost:8008' })
})
afterAll(() => server.close())

describe('the operations of the published interface', () => {
  it('are 258, and each has a test file in which it succeeds, or a reason', async () => {
    expect(new Set(PUBLISHED).size).toBe(258)
    const proofs = await readProofs()
    const unproven = PUBLISHED.filter((line) => proofs[line] === undefined && WITHOUT_FEATURE[line] === undefined)
    expect(unproven).toEqual([])
    expect(Object.values(proofs).filter((file) => !existsSync(join(PROJECT_ROOT, file)))).toEqual([])
    expect(Object.keys({ ...proofs, ...WITHOUT_FEATURE }).filter((line) => !PUBLISHED.includes(line))).toEqual([])
  })

  it('are known, in both dialects', async () => {
    const served = PUBLISHED.filter((line) => !isOutbound(line) && !(line in WITHOUT_FEATURE))
    const unknown = await mapConcurrently(served, 16, async (line) => {
      const [method = '', path = ''] = line.split(' ')
      const filled = path.replace(/\{[^}]+\}/g, 'x')
      const answers = await Promise.all(
        [filled, filled.replace('_matrix', '_proto')].map((url) => fetch(server.baseUrl + url, { method })),
      )
      const texts = await Promise.all(answers.map((answer) => answer.text()))
      return texts.some((text) => text.includes('M_UNRECOGNIZED')) ? [line] : []
    })
    expect(unknown.flat()).toEqual([])
  })

  it('are found by the paths of all releases', () => {
    expect(operationOf('GET', '/_proto/client/r0/sync')).toBe('GET /_matrix/client/v3/sync')
    expect(operationOf('GET', '/_matrix/client/v3/pushrules')).toBe('GET /_matrix/client/v3/pushrules/')
    expect(operationOf('PUT', '/_matrix/client/v3/profile/@a:b/displayname')).toBe(
      'PUT /_matrix/client/v3/profile/{userId}/displayname',
    )
    expect(operationOf('PUT', '/_matrix/client/v3/profile/@a:b/m.tz')).toBe(
      'PUT /_matrix/client/v3/profile/{userId}/{keyName}',
    )
    expect(operationOf('GET', '/nowhere')).toBeUndefined()
  })

  it('read something: no endpoint answers with a constant', () => {
    const constant = CLIENT_API.filter(({ handle }) => handle.length < 2).map(({ method, path }) => `${method} ${path}`)
    expect(constant.sort()).toEqual([...WITHOUT_SERVICES].sort())
  })
})
