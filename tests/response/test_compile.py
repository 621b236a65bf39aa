"""Compiled kernels are never older than their sources."""

from countermove.response.compilation import forget_stale_kernels


def test_an_edit_anywhere_forgets_every_compiled_kernel(tmp_path):
    (tmp_path / "a.py").write_text("one")
    forget_stale_kernels(tmp_path)
    compiled = tmp_path / "__pycache__" / "a.kernel-1.py311.nbi"
    compiled.write_text("machine code")
    forget_stale_kernels(tmp_path)
    assert compiled.exists()
    (tmp_path / "b.py").write_text("two")
    forget_stale_kernels(tmp_path)
    assert not compiled.exists()


def test_an_edit_of_a_kernel_called_elsewhere_forgets_them_too(tmp_path):
    folder, called = tmp_path / "folder", tmp_path / "called.py"
    folder.mkdir()
    called.write_text("one")
    forget_stale_kernels(folder, called)
    compiled = folder / "__pycache__" / "a.kernel-1.py311.nbi"
    compiled.write_text("machine code")
    forget_stale_kernels(folder, called)
    assert compiled.exists()
    called.write_text("two")
    forget_stale_kernels(folder, called)
    assert not compiled.exists()
