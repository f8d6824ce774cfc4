import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Api, openApi, register } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { type ChildServer, startChildServer } from '../support/child-server.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { json, proxyTo, startTlsServer, type TlsServer } from '../support/tls-server.ts'

/** A server as an operator runs it: a process of its own, behind a proxy that does TLS. */
interface House {
  readonly name: string
  readonly front: TlsServer
  readonly database: TestDatabase
  readonly child: ChildServer
  readonly api: Api
}

let authority: Authority
const houses: House[] = []

beforeAll(async () => {
  authority = createAuthority()
  houses.push(...(await Promise.all([openHouse(), openHouse()])))
})

afterAll(async () => {
  for (const { api, child, front, database } of houses) {
    await api.close()
    await child.dispose()
    await front.close()
    await database.drop()
  }
  authority.remove()
})

async function openHouse(): Promise<House> {
  const database = await createTestDatabase()
  const front = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  const name = `localhost:${front.port}`
  const child = await startChildServer({
    serverName: name,
    env: {
      HEARTH__DATABASE__URL: database.url,
      HEARTH__OUTBOUND__CA_FILE: authority.file,
      HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.1',
      HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '4',
      HEARTH__REGISTRATION__ENABLED: 'true',
    },
  })
  front.handler = proxyTo(child.baseUrl)
  return { name, front, database, child, api: openApi(child.baseUrl) }
}

test('a user of one process registers with the identity service of another, and the other way round', async () => {
  for (const [home, service] of [houses, houses.toReversed()] as [House, House][]) {
    const { userId, token } = await register(home.api, 'alice')
    const path = `/user/${encodeURIComponent(userId)}/openid/request_token`
    const openIdToken = await home.api.call('POST', path, { token, body: {} })
    const P2 = '/_matrix/identity/v2'
    const registered = await service.api.call('POST', `${P2}/account/register`, { body: openIdToken })
    const account = await service.api.call('GET', `${P2}/account`, { token: registered.token })
    expect(account).toEqual({ user_id: userId })
    expect(home.front.requests.map(({ url }) => url.split('?')[0])).toContain('/_matrix/federation/v1/openid/userinfo')
  }
})

test('an authority that the operator did not name vouches for nobody', async () => {
  const [home, service] = houses as [House, House]
  const stranger = createAuthority()
  const impostor = await startTlsServer(stranger.issue(['localhost']), json({ sub: `@alice:${home.name}` }))
  const body = {
    access_token: 'x',
    token_type: 'Bearer',
    expires_in: 3600,
    matrix_server_name: `localhost:${impostor.port}`,
  }
  const answer = await service.api.request('POST', '/_matrix/identity/v2/account/register', { body })
  expect(answer).toMatchObject({ status: 502, body: { errcode: 'M_UNKNOWN' } })
  expect(impostor.requests).toEqual([])
  await impostor.close()
  stranger.remove()
})
