import { describe, expect, it } from 'vitest'
import { createAddressGuard } from '../../src/outbound/addresses.ts'

const isOpen = createAddressGuard([])

describe('addresses on the public internet', () => {
  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '2a00::1', '3ffe::1'])(
    '%s is one',
    (address) => expect(isOpen(address)).toBe(true),
  )

  it.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.169.254',
    '172.16.0.1',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ])('%s is none', (address) => expect(isOpen(address)).toBe(false))

  it.each([
    '::',
    '::1',
    '::8.8.8.8',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '100::1',
    '2001::1',
    '2001:1ff::1',
    '2001:db8::1',
    '3fff::1',
    '3fff:fff::1',
    '4000::1',
    '5f00::1',
    '64:ff9b:1::1',
  ])('%s is none', (address) => expect(isOpen(address)).toBe(false))

  it.each([
    ['::ffff:10.0.0.1', false],
    ['::ffff:8.8.8.8', true],
    ['::ffff:7f00:1', false],
    ['64:ff9b::10.0.0.1', false],
    ['64:ff9b::8.8.8.8', true],
    ['2002:7f00:1::', false],
    ['2002:a9fe:a9fe::1', false],
    ['2002:808:808::1', true],
  ])('security row 77: the address inside %s decides: %s', (address, open) => expect(isOpen(address)).toBe(open))

  it('takes nothing else', () => {
    for (const text of ['', 'localhost', '1.2.3', '1.2.3.4.5', '::g', 'fe80::1%eth0']) expect(isOpen(text)).toBe(false)
  })
})

describe('ranges that the operator opens', () => {
  it('are open, also inside IPv6, and nothing beside them is', () => {
    const guard = createAddressGuard(['10.1.0.0/16', '127.0.0.1', 'fd00::/8', '::1'])
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '127.0.0.1', 'fd12::1', '::1', '8.8.8.8']) {
      expect(guard(address), address).toBe(true)
    }
    for (const address of ['10.2.0.1', '127.0.0.2', 'fc00::1', '::2']) expect(guard(address), address).toBe(false)
  })
})
