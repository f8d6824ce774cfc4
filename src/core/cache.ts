import { LRUCache } from 'lru-cache'

/**
 * A cache of at most `max` entries, or of so much as `sizeOf` makes of them, that forgets the least recently used first. It takes memory for what it holds; given `max` itself,
 * lru-cache takes room for all of it at once, which for a few dozen caches is a tenth of a server at rest.
 */
export function createCache<K extends {}, V extends {}>(
  max: number,
  { sizeOf = () => 1, ...options }: { dispose?: (value: V, key: K) => void; sizeOf?: (value: V) => number } = {},
): LRUCache<K, V> {
  return new LRUCache<K, V>({ ...options, maxSize: max, sizeCalculation: sizeOf })
}
