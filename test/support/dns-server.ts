import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface SrvAnswer {
  readonly priority?: number
  readonly weight?: number
  readonly port: number
  readonly name: string
}

/** What it knows of a name: addresses, services, or that it fails. */
export interface Zone {
  readonly addresses?: readonly string[]
  readonly services?: readonly SrvAnswer[]
  /** `silence`: no answer at all. */
  readonly fails?: 'SERVFAIL' | 'silence'
}

/** A name server on loopback, over UDP. */
export interface DnsServer {
  /** As a resolver takes it. */
  readonly address: string
  /** By name in lower case. What is not here does not exist. A function is asked anew each time. */
  readonly zones: Map<string, Zone | (() => Zone)>
  /** `TYPE name`, in the order of their coming. */
  readonly questions: string[]
  close(): Promise<void>
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA', 33: 'SRV' }
const SERVFAIL = 2
const NXDOMAIN = 3

export async function startDnsServer(): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const zones: DnsServer['zones'] = new Map()
  const questions: string[] = []
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = readQuestion(query)
    questions.push(`${TYPES[type] ?? type} ${name}`)
    const entry = zones.get(name.toLowerCase())
    const zone = typeof entry === 'function' ? entry() : entry
    if (zone?.fails === 'silence') return
    const code = zone === undefined ? NXDOMAIN : zone.fails === 'SERVFAIL' ? SERVFAIL : 0
    const answers = code === 0 ? answersOf(zone!, type) : []
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8180 | code, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(answers.length, 6)
    header.writeUInt32BE(0, 8)
    socket.send(
      Buffer.concat([header, query.subarray(12, end), ...answers.map((data) => record(type, data))]),
      port,
      address,
    )
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    zones,
    questions,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function answersOf({ addresses = [], services = [] }: Zone, type: number): Buffer[] {
  if (TYPES[type] === 'SRV') return services.map(serviceData)
  const kind = TYPES[type] === 'A' ? 'ipv4' : TYPES[type] === 'AAAA' ? 'ipv6' : ''
  return addresses
    .map((address) => ipaddr.parse(address))
    .filter((address) => address.kind() === kind)
    .map((address) => Buffer.from(address.toByteArray()))
}

function serviceData({ priority = 0, weight = 0, port, name }: SrvAnswer): Buffer {
  const numbers = Buffer.alloc(6)
  numbers.writeUInt16BE(priority, 0)
  numbers.writeUInt16BE(weight, 2)
  numbers.writeUInt16BE(port, 4)
  const labels = name.split('.').filter((label) => label !== '')
  return Buffer.concat([
    numbers,
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.alloc(1),
  ])
}

/** A record of the name that was asked for, which nobody is to remember. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
