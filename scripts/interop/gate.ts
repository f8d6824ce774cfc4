import type { Authority } from '../../test/support/certificate.ts'
import { json, proxyTo, startTlsServer } from '../../test/support/tls-server.ts'

/** The HTTPS front of a homeserver, as other homeservers see it. */
export interface Gate {
  /** What the server behind it is called. */
  readonly name: string
  /** What is behind it. */
  lead(baseUrl: string): void
  /** Lets nothing in until it is opened again: connections break. */
  shut(): void
  open(): void
  close(): Promise<void>
}

export async function startGate(authority: Authority): Promise<Gate> {
  const front = await startTlsServer(authority.issue(['localhost']), json({}, 503))
  let target = json({}, 503)
  let isShut = false
  front.handler = (request, response) => {
    front.requests.length = 0
    if (isShut) response.destroy()
    else target(request, response)
  }
  return {
    name: `localhost:${front.port}`,
    lead(baseUrl) {
      target = proxyTo(baseUrl)
    },
    shut() {
      isShut = true
    },
    open() {
      isShut = false
    },
    close: () => front.close(),
  }
}
