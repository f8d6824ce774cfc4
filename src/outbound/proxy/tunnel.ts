import { connect as connectTcp, isIPv6, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** What a proxy answers to CONNECT, at most. */
const MAX_ANSWER_BYTES = 16_384

export interface Tunnel {
  readonly proxy: URL
  /** Where the proxy is to connect: an address that was checked. */
  readonly address: string
  readonly port: number
  readonly timeoutMs: number
}

/**
 * Has a proxy connect to an address (RFC 9110, section 9.3.6). What is sent through the connection is between us and the other end.
 * @throws Error `ECONNREFUSED` if the proxy cannot be reached or does not do it; `UND_ERR_CONNECT_TIMEOUT`
 */
export function openTunnel({ proxy, address, port, timeoutMs }: Tunnel): Promise<Socket> {
  const host = proxy.hostname.replace(/^\[|\]$/g, '')
  const isSecure = proxy.protocol === 'https:'
  const at = { host, port: Number(proxy.port || (isSecure ? 443 : 80)) }
  const socket = isSecure ? connectTls({ ...at, servername: host }) : connectTcp(at)
  return new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0)
    const timer = setTimeout(() => fail('UND_ERR_CONNECT_TIMEOUT', 'the proxy took too long'), timeoutMs)

    function fail(code: string, reason: string): void {
      clearTimeout(timer)
      socket.destroy()
      reject(Object.assign(new Error(`outbound.proxy: ${reason}`), { code }))
    }

    function read(piece: Buffer): void {
      seen = Buffer.concat([seen, piece])
      const end = seen.indexOf('\r\n\r\n')
      if (end === -1) {
        if (seen.length > MAX_ANSWER_BYTES) fail('ECONNREFUSED', 'it does not answer as a proxy does')
        return
      }
      const [line = ''] = seen.toString('latin1', 0, end).split('\r\n')
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1]
      if (status?.startsWith('2') !== true) {
        fail('ECONNREFUSED', `it does not connect to port ${port}: ${line.slice(0, 100)}`)
        return
      }
      clearTimeout(timer)
      socket.off('data', read).off('error', broken).off('close', closed)
      // The reading went on by itself until here.
      socket.pause()
      const rest = seen.subarray(end + 4)
      if (rest.length > 0) socket.unshift(rest)
      resolve(socket)
    }

    const broken = (error: NodeJS.ErrnoException) => fail('ECONNREFUSED', error.code ?? error.message)
    const closed = () => fail('ECONNREFUSED', 'it closed the connection')
    socket.on('error', broken).on('close', closed).on('data', read)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => socket.write(request(proxy, address, port)))
  })
}

function request(proxy: URL, address: string, port: number): string {
  const target = `${isIPv6(address) ? `[${address}]` : address}:${port}`
  const { username, password } = proxy
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  const authorization = username === '' ? '' : `Proxy-Authorization: Basic ${credentials}\r\n`
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${authorization}\r\n`
}
