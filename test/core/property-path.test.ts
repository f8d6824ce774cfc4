import { describe, expect, it } from 'vitest'
import { parsePropertyPath, propertyAt } from '../../src/core/property-path.ts'

describe('property paths (appendices, dot-separated property paths)', () => {
  it.each([
    ['content.body', ['content', 'body']],
    ['content.m\\.relates_to.rel_type', ['content', 'm.relates_to', 'rel_type']],
    ['content.m\\\\foo', ['content', 'm\\foo']],
    ['content.\\x', ['content', '\\x']],
    ['type\\.', ['type.']],
    ['a..b', ['a', '', 'b']],
    ['', ['']],
    ['a\\', ['a\\']],
  ])('%j is %j', (text, names) => {
    expect(parsePropertyPath(text)).toEqual(names)
  })

  it('sees own properties alone', () => {
    const event = { content: { body: 'hi', list: ['x'] } }
    expect(propertyAt(event, ['content', 'body'])).toBe('hi')
    expect(propertyAt(event, ['content', 'toString'])).toBeUndefined()
    expect(propertyAt(event, ['content', 'list', '0'])).toBeUndefined()
    expect(propertyAt(event, ['content', 'body', 'length'])).toBeUndefined()
  })
})
