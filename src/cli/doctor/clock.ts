import { createSocket } from 'node:dgram'
import type { Names } from '../../outbound/names.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

const TIMEOUT_MS = 3_000
const NTP_PORT = 123
/** From 1900, as NTP counts, to 1970. */
const EPOCH_SECONDS = 2_208_988_800
const PACKET_BYTES = 48
const TRANSMITTED_AT = 40

/** Checks this machine's clock against a time server (RFC 4330). */
export async function examineClock(names: Names, timeServer: string, now: () => number): Promise<Finding> {
  const [host = '', port = NTP_PORT] = timeServer.split(':')
  try {
    const [address] = await names.addressesOf(host)
    const offMs = await offset(address!.address, Number(port), now)
    return verdict(offMs, timeServer)
  } catch (error) {
    const advice = 'see that a time service runs here (timedatectl), or name another server by --time-server'
    return warning('clock', `cannot be compared: ${(error as Error).message}`, advice)
  }
}

function verdict(offMs: number, timeServer: string): Finding {
  const text = `${(Math.abs(offMs) / 1000).toFixed(1)} s ${offMs < 0 ? 'behind' : 'ahead of'} ${timeServer}`
  const advice = 'let a time service set it (timedatectl set-ntp true): others refuse signatures from another time'
  if (Math.abs(offMs) > 60_000) return problem('clock', text, advice)
  return Math.abs(offMs) > 2_000 ? warning('clock', text, advice) : ok('clock', text)
}

/** Milliseconds by which this clock is ahead. */
function offset(address: string, port: number, now: () => number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    const end = (finish: () => void): void => {
      clearTimeout(late)
      socket.close()
      finish()
    }
    const late = setTimeout(() => end(() => reject(new Error(`${address} does not answer`))), TIMEOUT_MS)
    socket.once('error', (error: NodeJS.ErrnoException) =>
      end(() => reject(error.code === 'ECONNREFUSED' ? new Error(`nothing listens at ${address}:${port}`) : error)),
    )
    const packet = Buffer.alloc(PACKET_BYTES)
    // Version 4, a client's request.
    packet[0] = 0x23
    const begun = now()
    socket.once('message', (answer) => {
      if (answer.length < PACKET_BYTES) return end(() => reject(new Error(`${address} gives no time`)))
      const seconds = answer.readUInt32BE(TRANSMITTED_AT) - EPOCH_SECONDS
      const fraction = answer.readUInt32BE(TRANSMITTED_AT + 4) / 2 ** 32
      end(() => resolve((begun + now()) / 2 - (seconds + fraction) * 1000))
    })
    // Only a connected socket is told that nothing listens there.
    socket.connect(port, address, () => socket.send(packet))
  })
}
