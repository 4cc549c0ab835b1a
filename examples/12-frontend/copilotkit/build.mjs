// Builds the page into dist: npm run build.
import fs from 'node:fs'
import { build } from 'esbuild'

fs.rmSync('dist', { recursive: true, force: true })
await build({
  entryPoints: ['chat.jsx'], outdir: 'dist', bundle: true, splitting: true, minify: true, format: 'esm', target: 'es2022', jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"' }, loader: { '.woff': 'file', '.woff2': 'file', '.ttf': 'file' }, legalComments: 'linked', logLevel: 'warning',
})
fs.copyFileSync('index.html', 'dist/index.html')
