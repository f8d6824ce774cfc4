// biome-ignore lint/style/useNodejsImportProtocol: the package for pages
export { Buffer } from 'buffer'
