import type { ServerResponse } from 'node:http'
import type { Account, Api, Json } from '../support/api.ts'
import { type Authority, createAuthority } from '../support/certificate.ts'
import { startTlsServer } from '../support/tls-server.ts'
import { waitUntil } from '../support/wait.ts'

export const NOTIFY_PATH = '/_matrix/push/v1/notify'

/** What a gateway does with a notification: answer with these keys rejected, with a status, or whatever it does itself. */
export type GatewayBehaviour = (
  notification: Json,
  response: ServerResponse,
) => { readonly rejected?: readonly string[] } | number | undefined

export const TAKES_ALL: GatewayBehaviour = () => ({ rejected: [] })

/** A push gateway on loopback that records what it is sent. */
export interface TestGateway {
  readonly url: string
  readonly port: number
  readonly authority: Authority
  /** The notifications that it has accepted, in order. */
  readonly taken: Json[]
  /** All requests, accepted or not, with their times by the clock that was given, or else the machine's. */
  readonly requests: { readonly notification: Json; readonly at: number }[]
  behave(behaviour: GatewayBehaviour): void
  /** Those for one push key. */
  of(pushkey: string): Json[]
  /** Waits until so many for a push key were taken. */
  until(pushkey: string, count: number): Promise<Json[]>
  close(): Promise<void>
}

export async function startGateway(authority = createAuthority(), port = 0, now = Date.now): Promise<TestGateway> {
  const taken: Json[] = []
  const requests: TestGateway['requests'] = []
  let behaviour = TAKES_ALL
  const server = await startTlsServer(
    authority.issue(['127.0.0.1']),
    ({ method, url, body }, response) => {
      if (method !== 'POST' || url !== NOTIFY_PATH) return void response.writeHead(404).end('{}')
      const { notification } = JSON.parse(body)
      requests.push({ notification, at: now() })
      const answer = behaviour(notification, response)
      if (answer === undefined) return
      const status = typeof answer === 'number' ? answer : 200
      if (status === 200) taken.push(notification)
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(typeof answer === 'number' ? {} : answer))
    },
    '127.0.0.1',
    port,
  )
  const of = (pushkey: string) => taken.filter(({ devices }) => devices[0].pushkey === pushkey)
  return {
    url: `https://127.0.0.1:${server.port}${NOTIFY_PATH}`,
    port: server.port,
    authority,
    taken,
    requests,
    behave(next) {
      behaviour = next
    },
    of,
    until: (pushkey, count) =>
      waitUntil(`${count} notifications for ${pushkey}, of ${requests.length} requests`, () => {
        const found = of(pushkey)
        return found.length >= count && found
      }),
    close: server.close,
  }
}

/** Sets a pusher with a gateway. */
export async function setPusher(
  api: Api,
  who: Account,
  gateway: Pick<TestGateway, 'url'>,
  pushkey: string,
  more: { readonly data?: Json; readonly [key: string]: unknown } = {},
): Promise<void> {
  const { data, ...rest } = more
  const body = {
    ...{ kind: 'http', app_id: 'org.app', pushkey, app_display_name: 'App', device_display_name: 'Phone', lang: 'en' },
    ...{ ...rest, data: { url: gateway.url, ...data } },
  }
  await api.call('POST', '/pushers/set', { token: who.token, body })
}

export const bodiesOf = (notifications: readonly Json[]): unknown[] => notifications.map(({ content }) => content?.body)
