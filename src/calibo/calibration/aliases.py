"""Model identities in studies stored before parts had registered names, mapped to current ones.

Covers the presets, and the presets with one part changed. A test builds each model from its spec and compares.
"""

ALIASES = {
    "ModelChoice-a7e4a00da15d": "6d036b6d7062fadd",
    "GaussianProcess-dae59cfadc43": "aeff58d7c6a9569e",
    "GaussianProcess-5f3bc46f5aee": "b5bbe24c0939c52e",
    "Bagged-dd53db264492": "f083cfdb3b3d578a",
    "LocalScale-3e372b8555f4": "0784c5aee6d4da77",
    "GaussianProcess-ffb1001c692f": "aed9b4543270902b",
    "GaussianProcess-fbcebbced1d6": "f6944c347fd8e630",
    "GaussianProcess-524665f92e94": "fe49db11e92c447e",
    "GaussianProcess-1592ab50e275": "7fbde1d2e8597aa8",
    "GaussianProcess-2cea5c4b4031": "889e1aad17ae69d4",
    "GaussianProcess-8ccb4e8b37ea": "690ec29615add380",
    "GaussianProcess-95e1a2088c02": "e83fd7658aa07d5c",
    "GaussianProcess-ebba958cf3a6": "10f083d2455a6e7d",
    "Bagged-1576cf68fc05": "2dccf01eead56247",
    "LocalScale-8c4c560537a2": "81f9cabbb1af7ec7",
    "KnownOptimum-85538f57667e": "2ad1a93b994e5bfb",
    "KnownOptimum-7ad96d46ca9b": "846ec594d629168d",
    "GaussianProcess-58871313e6f8": "f3db310ba643e672",
    "GaussianProcess-4c5828cc0473": "e260ee4c81f64745",
    "GaussianProcess-4d930c6d97d0": "c17c05f2cd04b24f",
    "GaussianProcess-cd8175667080": "d5f85b51933bfc29",
    "GaussianProcess-655f974fe55f": "aacb326d157f5d45",
    "GaussianProcess-190a6317b21b": "1cef2a83b5dc82af",
    "GaussianProcess-b5f18894bbc9": "b0e258f2b8946cd8",
    "GaussianProcess-9f434fc04cc1": "59f8a63f3ff6607d",
    "Bagged-74e18aaf1948": "994aaac313de9d63",
    "LocalScale-ca154104b065": "257991a348fdfebf",
    "KnownOptimum-82314ed9a3de": "c6138cb1bf9829f5",
    "KnownOptimum-78507907f6a1": "417967eab18e5faf",
}
