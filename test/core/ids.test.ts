import { expect, it } from 'vitest'
import { isServerName, isUserId, serverOf, splitServerName, type UserId } from '../../src/core/ids.ts'

it.each([
  ['example.org', 'example.org', undefined],
  ['example.org:8448', 'example.org', 8448],
  ['example.org:0', 'example.org', 0],
  ['example.org:65535', 'example.org', 65_535],
  ['Example.ORG', 'Example.ORG', undefined],
  ['localhost', 'localhost', undefined],
  ['xn--bcher-kva.example', 'xn--bcher-kva.example', undefined],
  ['1.2.3.4', '1.2.3.4', undefined],
  ['1.2.3.4:1234', '1.2.3.4', 1234],
  ['[1234:5678::abcd]', '[1234:5678::abcd]', undefined],
  ['[1234:5678::abcd]:5678', '[1234:5678::abcd]', 5678],
  ['[::ffff:1.2.3.4]:1', '[::ffff:1.2.3.4]', 1],
  [`${'a'.repeat(230)}`, 'a'.repeat(230), undefined],
])('appendices, "Server name": %s is host %s, port %s', (name, host, port) => {
  expect(splitServerName(name)).toEqual({ host, port })
  expect(isServerName(name)).toBe(true)
  expect(serverOf(`@a:${name.slice(0, 200)}` as UserId)).toBe(name.slice(0, 200))
})

it.each([
  '',
  ':8448',
  'example.org:',
  'example.org:65536',
  'example.org:123456',
  'example.org:-1',
  'example.org:80:80',
  'example.org:8o',
  'example org',
  'example.org/path',
  'example.org?x',
  'example.org#x',
  'user@example.org',
  'https://example.org',
  'exa_mple.org',
  'bücher.example',
  '::1',
  '[::1',
  '::1]:80',
  '[::1]x',
  '[example.org]',
  '[]',
  'example.org\n',
  'example.org\0',
  'a'.repeat(231),
])('appendices, "Server name": %j is none', (name) => {
  expect(splitServerName(name)).toBeUndefined()
  expect(isUserId(`@a:${name}`)).toBe(false)
})
